-- name: now
-- The database's clock is the only one.
SELECT clock_timestamp();

-- name: capability_key
SELECT value FROM noetl.secret WHERE name = 'capability';

-- name: take_shard
SELECT noetl.take_shard($1, $2, make_interval(secs => $3));

-- name: release_shard
-- A clean stop lets the next one in at once.
UPDATE noetl.engine_shard SET holder = NULL, expires_at = '-infinity' WHERE shard = $1 AND holder = $2;

-- name: shard_holder
SELECT e.shard, s.holder FROM noetl.execution e
LEFT JOIN noetl.engine_shard s ON s.shard = e.shard AND s.expires_at >= clock_timestamp()
WHERE e.execution_id = $1;

-- name: keep_playbook
INSERT INTO noetl.playbook (digest, document) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: get_playbook
SELECT document FROM noetl.playbook WHERE digest = $1;

-- name: create
-- One execution per request key: whoever asks again gets the first one's id.
WITH made AS (
  INSERT INTO noetl.execution (execution_id, namespace, name, playbook, digest, workload, request_key, parent,
                               parent_id, depth, deadline_at, origin, problems, shard, pool, pools, state)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)
  ON CONFLICT DO NOTHING RETURNING execution_id)
SELECT execution_id, true AS is_new FROM made
UNION ALL
SELECT execution_id, false FROM noetl.execution
WHERE execution_id = $1 OR (namespace = $2 AND request_key = $7)
LIMIT 1;

-- name: load
SELECT x.*, p.document FROM noetl.execution x JOIN noetl.playbook p USING (digest)
WHERE x.execution_id = ANY ($1);

-- name: free_shard
-- A shard for a process that wants one of its own: led by nobody, and nothing unfinished in it that
-- another process left behind.
SELECT min(n) FROM generate_series($1::integer, $1 + 1 + (SELECT count(*) FROM noetl.engine_shard)::integer
                                   + (SELECT count(DISTINCT shard) FROM noetl.execution WHERE finished_at IS NULL)::integer) n
WHERE NOT EXISTS (SELECT 1 FROM noetl.engine_shard s
                  WHERE s.shard = n AND s.holder IS NOT NULL AND s.expires_at >= clock_timestamp())
  AND NOT EXISTS (SELECT 1 FROM noetl.execution x WHERE x.shard = n AND x.finished_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM noetl.action a WHERE a.shard = n);

-- name: adopt
-- Moves an execution and its descendants to a shard and a pool: their process is gone, and so are its
-- workers. Their leases stay as they are (and do not run out meanwhile): whoever adopts ends them.
WITH RECURSIVE f AS (
  SELECT execution_id FROM noetl.execution WHERE execution_id = $1
  UNION SELECT x.execution_id FROM noetl.execution x JOIN f ON x.parent_id = f.execution_id),
moved AS (UPDATE noetl.execution x SET shard = $2, pool = $3, pools = '{}', due_at = clock_timestamp()
          FROM f WHERE x.execution_id = f.execution_id AND x.finished_at IS NULL RETURNING x.execution_id),
runs AS (UPDATE noetl.step_run s SET pool = $3,
           lease_until = CASE WHEN s.lease_until IS NULL THEN NULL ELSE clock_timestamp() + interval '1 hour' END
         FROM f WHERE s.execution_id = f.execution_id RETURNING s.lease_id),
acts AS (UPDATE noetl.action a SET shard = $2, run_at = clock_timestamp()
         FROM f WHERE a.execution_id = f.execution_id RETURNING a.action_id)
SELECT execution_id FROM moved;

-- name: leases_of
-- What workers hold of some executions.
SELECT execution_id, lease_id, epoch FROM noetl.step_run WHERE execution_id = ANY ($1) AND lease_until IS NOT NULL;

-- name: expire_owner
-- A worker is known to be gone: what it held runs out now.
UPDATE noetl.step_run SET lease_until = clock_timestamp() WHERE owner = $1 AND lease_until IS NOT NULL;

-- name: unfinished
-- What a shard still has to do: executions, and actions that may make more of them.
SELECT (SELECT count(*) FROM noetl.execution WHERE shard = $1 AND finished_at IS NULL)
     + (SELECT count(*) FROM noetl.action WHERE shard = $1 AND body ->> 'kind' = 'CreateChild');

-- name: make_wish
INSERT INTO noetl.wish (wish_id, execution_id, body) VALUES ($1, $2, $3);

-- name: wishes
-- What is asked of the executions of a shard, in order.
SELECT w.wish_id, w.execution_id, w.body FROM noetl.wish w JOIN noetl.execution x USING (execution_id)
WHERE w.answer IS NULL AND x.shard = $1 ORDER BY w.created_at, w.wish_id LIMIT 100;

-- name: answer_wish
UPDATE noetl.wish SET answer = $2 WHERE wish_id = $1;

-- name: wish_answer
SELECT answer FROM noetl.wish WHERE wish_id = $1;

-- name: drop_wish
-- With those that nobody came back for.
DELETE FROM noetl.wish WHERE wish_id = $1 OR created_at < clock_timestamp() - interval '1 day';

-- name: family
-- An execution and all its descendants.
WITH RECURSIVE f AS (
  SELECT execution_id FROM noetl.execution WHERE execution_id = $1
  UNION SELECT x.execution_id FROM noetl.execution x JOIN f ON x.parent_id = f.execution_id)
SELECT execution_id FROM f;

-- name: lease
SELECT * FROM noetl.lease($1, $2, $3, make_interval(secs => $4));

-- name: lease_one
UPDATE noetl.step_run SET epoch = epoch + 1, owner = $3, lease_until = clock_timestamp() + make_interval(secs => $4)
WHERE lease_id = (SELECT lease_id FROM noetl.step_run WHERE lease_id = $1 AND pool = $2 AND lease_until IS NULL
                  FOR UPDATE SKIP LOCKED)
RETURNING *;

-- name: heartbeat
SELECT * FROM noetl.heartbeat($1, $2, make_interval(secs => $3));

-- name: prolong
UPDATE noetl.step_run s SET lease_until = clock_timestamp() + make_interval(secs => $2)
FROM noetl.execution x
WHERE x.execution_id = s.execution_id AND x.shard = $1
  AND s.lease_until < clock_timestamp() + make_interval(secs => $2);

-- name: expired
SELECT s.execution_id, s.lease_id, s.epoch FROM noetl.step_run s JOIN noetl.execution x USING (execution_id)
WHERE s.lease_until <= clock_timestamp() AND x.shard = $1
ORDER BY s.lease_until LIMIT $2;

-- name: due
SELECT execution_id FROM noetl.execution WHERE shard = $1 AND due_at <= clock_timestamp() ORDER BY due_at LIMIT $2;

-- name: live
SELECT execution_id FROM noetl.execution WHERE shard = $1 AND finished_at IS NULL;

-- name: queued
-- How many commands wait per pool, and since when.
SELECT pool, count(*) AS waiting, min(run_at) AS oldest FROM noetl.step_run WHERE lease_until IS NULL GROUP BY pool;

-- name: demand
-- What waits and what is held in each pool, by execution.
SELECT s.pool, s.execution_id, count(*) FILTER (WHERE s.lease_until IS NULL) AS waiting,
       count(*) FILTER (WHERE s.lease_until IS NOT NULL) AS held
FROM noetl.step_run s JOIN noetl.execution x USING (execution_id)
WHERE x.shard = $1 GROUP BY s.pool, s.execution_id;

-- name: singles
-- The commands that have a worker of their own, the oldest first.
SELECT s.pool, s.execution_id, s.lease_id, s.epoch, s.command ->> 'step' AS step,
       CASE WHEN s.lease_until IS NOT NULL THEN s.owner END AS owner
FROM noetl.step_run s JOIN noetl.execution x USING (execution_id)
WHERE x.shard = $1 AND starts_with(s.pool, 'step/') ORDER BY s.run_at, s.lease_id;

-- name: holders
-- How many commands each worker holds.
SELECT x.namespace, s.owner, count(*) AS held
FROM noetl.step_run s JOIN noetl.execution x USING (execution_id)
WHERE x.shard = $1 AND s.lease_until IS NOT NULL GROUP BY x.namespace, s.owner;

-- name: held_by
SELECT s.execution_id, s.lease_id, s.epoch
FROM noetl.step_run s JOIN noetl.execution x USING (execution_id)
WHERE x.shard = $1 AND x.namespace = $2 AND s.owner = $3 AND s.lease_until IS NOT NULL;

-- name: unfinished_of
SELECT execution_id FROM noetl.execution WHERE execution_id = ANY ($1) AND finished_at IS NULL;

-- name: actions
SELECT action_id, execution_id, body FROM noetl.action
WHERE shard = $1 AND run_at <= clock_timestamp() ORDER BY action_id LIMIT $2;

-- name: acted
DELETE FROM noetl.action WHERE action_id = ANY ($1);

-- name: action_later
UPDATE noetl.action SET attempts = attempts + 1,
  run_at = clock_timestamp() + make_interval(secs => least(60, 0.5 * 2 ^ least(attempts, 10)))
WHERE action_id = $1;

-- name: events
SELECT * FROM noetl.event WHERE execution_id = $1 AND seq > $2 ORDER BY seq LIMIT $3;

-- name: iterations
SELECT name, iteration, payload FROM noetl.event
WHERE execution_id = $1 AND run_id = $2 AND name IN ('loop.iteration.done', 'loop.iteration.failed')
ORDER BY seq;

-- name: frames
SELECT coalesce(iteration, '') AS iteration, payload FROM noetl.event
WHERE execution_id = $1 AND run_id = $2 AND name IN ('loop.started', 'loop.opened');

-- name: put_result
-- One that is there is young again: the sweep must not take it before its use is noted.
INSERT INTO noetl.result AS r (key, content) VALUES ($1, $2)
ON CONFLICT (key) DO UPDATE SET created_at = clock_timestamp()
WHERE r.created_at < clock_timestamp() - interval '10 minutes';

-- name: use_result
INSERT INTO noetl.result_use VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: get_result
SELECT content FROM noetl.result WHERE key = $1;

-- name: append_logs
INSERT INTO noetl.task_log
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::text[], $7::text[],
                     $8::integer[], $9::text[], $10::text[], $11::text[])
ON CONFLICT DO NOTHING;

-- name: logs
-- Lines after a place, in the order in which they were written.
SELECT * FROM noetl.task_log
WHERE execution_id = $1 AND ($2::text IS NULL OR step = $2)
  AND (recorded_at, lease_id, epoch, line) > ($3::timestamptz, $4::uuid, $5::bigint, $6::bigint)
ORDER BY recorded_at, lease_id, epoch, line LIMIT $7;

-- name: list
SELECT execution_id, namespace, name, playbook, phase, parent_id, created_at, finished_at, seq,
       state ->> 'started_at' AS started_at, state ->> 'reason' AS reason, state ->> 'message' AS message,
       state -> 'steps' AS steps
FROM noetl.execution
WHERE ($1::text IS NULL OR namespace = $1) AND ($2::uuid[] IS NULL OR execution_id = ANY ($2))
ORDER BY execution_id DESC LIMIT $3;

-- name: find
-- By id or the start of one.
SELECT execution_id FROM noetl.execution WHERE starts_with(execution_id::text, $1) ORDER BY execution_id DESC LIMIT 2;

-- name: latest
SELECT execution_id FROM noetl.execution WHERE parent_id IS NULL ORDER BY execution_id DESC LIMIT 1;

-- name: outline
-- The events of an execution without those of single iterations and their tasks.
SELECT * FROM noetl.event
WHERE execution_id = $1 AND seq > $2 AND iteration IS NULL AND name NOT IN ('policy.task.evaluated', 'iter.patched')
ORDER BY seq LIMIT $3;

-- name: outline_iterations
-- What happened inside of loops, counted.
SELECT run_id, step, task, name, count(*) AS times, max(attempt) AS attempt FROM noetl.event
WHERE execution_id = $1 AND iteration IS NOT NULL
  AND name IN ('task.started', 'task.attempt.failed', 'task.done', 'task.failed',
               'loop.iteration.done', 'loop.iteration.failed')
GROUP BY run_id, step, task, name;

-- name: failed_iterations
SELECT * FROM noetl.event WHERE execution_id = $1 AND name = 'loop.iteration.failed' ORDER BY seq LIMIT $2;

-- name: matching
-- Events after a place in the log, of one step where one is named.
SELECT * FROM noetl.event
WHERE execution_id = $1 AND seq > $2 AND ($3::text IS NULL OR step = $3) AND name LIKE $4
ORDER BY seq LIMIT $5;

-- name: step_ends
-- The last end of a step.
SELECT * FROM noetl.event
WHERE execution_id = $1 AND step = $2 AND name IN ('step.done', 'loop.done', 'step.failed')
ORDER BY seq DESC LIMIT 1;

-- name: children_of
SELECT execution_id, parent ->> 'run_id' AS run_id, parent ->> 'task' AS task FROM noetl.execution
WHERE parent_id = $1 ORDER BY execution_id;

-- name: raw_events
-- Events with the text of their payload and their hash as stored, to be verified.
SELECT *, payload::text AS payload_text FROM noetl.event WHERE execution_id = $1 AND seq > $2 ORDER BY seq LIMIT $3;

-- name: heads
SELECT execution_id, head FROM noetl.execution WHERE execution_id = ANY ($1);

-- name: head
SELECT head, seq, state, phase FROM noetl.execution WHERE execution_id = $1;

-- name: partitions
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'noetl.event'::regclass ORDER BY c.relname;

-- name: ensure_partitions
SELECT noetl.ensure_partitions($1);

-- name: drop_partition
SELECT noetl.drop_partition($1);

-- name: sweep_results
SELECT noetl.sweep_results(make_interval(secs => $1), $2);

-- name: object_link
-- The execution of an object: the first one that is named stays.
WITH made AS (
  INSERT INTO noetl.object (uid, execution_id, namespace, name, spec_key, playbook_generation)
  VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING *)
SELECT * FROM made UNION ALL SELECT * FROM noetl.object WHERE uid = $1 LIMIT 1;

-- name: object_links
SELECT * FROM noetl.object WHERE namespace = $1 AND name = $2;

-- name: object_all
-- Every object that should be there.
SELECT * FROM noetl.object WHERE removed_at IS NULL;

-- name: object_of
SELECT * FROM noetl.object WHERE execution_id = $1 ORDER BY created_at DESC LIMIT 1;

-- name: object_adopt
-- An object that the operator removed is there again: it gets the outcome that is on record.
UPDATE noetl.object SET uid = $3, removed_at = NULL, adopted = true
WHERE uid = (SELECT uid FROM noetl.object WHERE namespace = $1 AND spec_key = $2 AND removed_at IS NOT NULL
             ORDER BY created_at DESC LIMIT 1)
RETURNING *;

-- name: object_removed
UPDATE noetl.object SET removed_at = clock_timestamp() WHERE uid = $1;

-- name: object_unlink
DELETE FROM noetl.object WHERE uid = $1;

-- name: object_view
-- An execution as its status shows it.
SELECT execution_id, namespace, name, playbook, digest, state, problems FROM noetl.execution
WHERE execution_id = $1;

-- name: object_namespace
SELECT namespace FROM noetl.execution WHERE execution_id = $1;

-- name: object_latest
-- The last execution of a name, other than one.
SELECT execution_id FROM noetl.execution WHERE namespace = $1 AND name = $2 AND execution_id <> $3
ORDER BY execution_id DESC LIMIT 1;

-- name: object_live_children
SELECT count(*) FROM noetl.execution WHERE parent_id = $1 AND finished_at IS NULL;
