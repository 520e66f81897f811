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

-- name: free_shard
-- The lowest shard that nobody leads, for a process that only wants one of its own.
SELECT coalesce(
  (SELECT min(shard) FROM noetl.engine_shard WHERE shard >= $1 AND (holder IS NULL OR expires_at < clock_timestamp())),
  (SELECT greatest(coalesce(max(shard) + 1, $1), $1) FROM noetl.engine_shard));

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
SELECT x.*, p.document FROM noetl.execution x JOIN noetl.playbook p USING (digest) WHERE x.execution_id = $1;

-- name: adopt
-- Moves an execution of a dead process to this shard; what its workers held is free again.
UPDATE noetl.execution SET shard = $2, pool = $3, pools = '{}', due_at = clock_timestamp() WHERE execution_id = $1;

-- name: adopt_runs
UPDATE noetl.step_run SET pool = $2, lease_until = least(lease_until, clock_timestamp()) WHERE execution_id = $1;

-- name: adopt_actions
UPDATE noetl.action SET shard = $2 WHERE execution_id = $1;

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

-- name: expired
SELECT s.execution_id, s.lease_id, s.epoch FROM noetl.step_run s JOIN noetl.execution x USING (execution_id)
WHERE s.lease_until < clock_timestamp() AND x.shard = $1
ORDER BY s.lease_until LIMIT $2;

-- name: due
SELECT execution_id FROM noetl.execution WHERE shard = $1 AND due_at <= clock_timestamp() ORDER BY due_at LIMIT $2;

-- name: live
SELECT execution_id FROM noetl.execution WHERE shard = $1 AND finished_at IS NULL;

-- name: queued
-- How many commands wait per pool, and since when.
SELECT pool, count(*) AS waiting, min(run_at) AS oldest FROM noetl.step_run WHERE lease_until IS NULL GROUP BY pool;

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
WHERE execution_id = $1 AND run_id = $2 AND name IN ('loop.iteration.done', 'loop.iteration.failed');

-- name: frames
SELECT coalesce(iteration, '') AS iteration, payload FROM noetl.event
WHERE execution_id = $1 AND run_id = $2 AND name IN ('loop.started', 'loop.opened');

-- name: put_result
INSERT INTO noetl.result (key, content) VALUES ($1, $2) ON CONFLICT DO NOTHING;

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
SELECT * FROM noetl.task_log WHERE execution_id = $1 AND (recorded_at, lease_id, epoch, line) > ($2, $3, $4, $5)
ORDER BY recorded_at, lease_id, epoch, line LIMIT $6;

-- name: list
SELECT execution_id, namespace, name, playbook, phase, state, created_at, finished_at, seq FROM noetl.execution
WHERE ($1::text IS NULL OR namespace = $1) ORDER BY execution_id DESC LIMIT $2;

-- name: find
-- By id or the start of one.
SELECT execution_id FROM noetl.execution WHERE execution_id::text LIKE $1 || '%' ORDER BY execution_id DESC LIMIT 2;

-- name: latest
SELECT execution_id FROM noetl.execution WHERE parent_id IS NULL ORDER BY execution_id DESC LIMIT 1;

-- name: partitions
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'noetl.event'::regclass ORDER BY c.relname;

-- name: ensure_partitions
SELECT noetl.ensure_partitions($1);

-- name: drop_partition
SELECT noetl.drop_partition($1);

-- name: sweep_results
SELECT noetl.sweep_results(make_interval(secs => $1), $2);
