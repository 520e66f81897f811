-- The log, the queue and the results. Everything stands in a schema of its own.
-- JSON is kept as `json`, not `jsonb`: the text of an event is part of its hash, and a result may hold
-- characters and numbers that jsonb changes or refuses.

CREATE TABLE noetl.playbook (
  digest      text PRIMARY KEY,
  document    json NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- One row per execution: the head of its log, and what the log adds up to so far.
CREATE TABLE noetl.execution (
  execution_id  uuid PRIMARY KEY,           -- version 7: ordered by time
  namespace     text NOT NULL,
  name          text NOT NULL,
  playbook      text NOT NULL,
  digest        text NOT NULL REFERENCES noetl.playbook,
  workload      json NOT NULL,
  request_key   text,
  parent        json,
  parent_id     uuid,
  depth         integer NOT NULL DEFAULT 0,
  deadline_at   timestamptz,
  origin        json,                       -- of a rerun: what it starts from
  problems      json NOT NULL,              -- of a playbook that cannot run: why
  shard         integer NOT NULL,
  pool          text NOT NULL,              -- where its commands wait for workers
  pools         jsonb NOT NULL,             -- steps whose commands wait elsewhere
  seq           bigint NOT NULL DEFAULT 0,
  state         json NOT NULL,
  phase         text NOT NULL DEFAULT 'Pending',
  head          bytea NOT NULL DEFAULT '',  -- the hash of the last event
  due_at        timestamptz DEFAULT clock_timestamp(),  -- when to look at it, whatever else happens
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  updated_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  finished_at   timestamptz
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX execution_request ON noetl.execution (namespace, request_key) WHERE request_key IS NOT NULL;
CREATE INDEX execution_due ON noetl.execution (shard, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX execution_live ON noetl.execution (shard) WHERE finished_at IS NULL;
CREATE INDEX execution_parent ON noetl.execution (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE noetl.event (
  execution_id  uuid NOT NULL,
  seq           bigint NOT NULL,
  event_id      uuid NOT NULL,
  name          text NOT NULL,
  recorded_at   timestamptz NOT NULL,
  source        text NOT NULL,
  step          text,
  run_id        uuid,
  task          text,
  attempt       integer,
  iteration     text,
  payload       json NOT NULL,
  hash          bytea NOT NULL,
  PRIMARY KEY (execution_id, seq)
) PARTITION BY RANGE (execution_id);
CREATE UNIQUE INDEX event_once ON noetl.event (execution_id, event_id);
-- What the end of a loop gathers.
CREATE INDEX event_iteration ON noetl.event (execution_id, run_id)
  WHERE name IN ('loop.iteration.done', 'loop.iteration.failed', 'loop.started', 'loop.opened');

CREATE FUNCTION noetl.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the log is append-only' USING ERRCODE = 'NO004';
END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON noetl.event
  FOR EACH ROW EXECUTE FUNCTION noetl.refuse_change();

CREATE FUNCTION noetl.uuid7_floor(at timestamptz) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
  SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- Partitions are weeks of execution ids. Made ahead of time; dropped as a whole. Both need the owner's rights,
-- which the engine does not have.
CREATE FUNCTION noetl.ensure_partitions(weeks_ahead integer) RETURNS integer LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
  week timestamptz := date_trunc('week', clock_timestamp() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '7 days';
  made integer := 0;
  part text;
BEGIN
  PERFORM pg_advisory_xact_lock(7235417, 1);  -- replicas do this at the same time
  FOR i IN 0 .. weeks_ahead + 1 LOOP
    part := 'event_' || to_char(week AT TIME ZONE 'UTC', 'IYYY"w"IW');
    IF to_regclass('noetl.' || part) IS NULL THEN
      EXECUTE format('CREATE TABLE noetl.%I PARTITION OF noetl.event FOR VALUES FROM (%L) TO (%L)',
                     part, noetl.uuid7_floor(week), noetl.uuid7_floor(week + interval '7 days'));
      made := made + 1;
    END IF;
    week := week + interval '7 days';
  END LOOP;
  RETURN made;
END $$;

-- The queue: what workers may lease. A row is gone when its run is over.
CREATE TABLE noetl.step_run (
  lease_id      uuid PRIMARY KEY,
  execution_id  uuid NOT NULL,
  pool          text NOT NULL,
  run_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  epoch         bigint NOT NULL DEFAULT 0,
  owner         text,
  lease_until   timestamptz,
  stop          boolean NOT NULL DEFAULT false,
  command       json NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX step_run_ready ON noetl.step_run (pool, run_at, lease_id) WHERE lease_until IS NULL;
CREATE INDEX step_run_leased ON noetl.step_run (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX step_run_execution ON noetl.step_run (execution_id);

-- What is to be done outside this database once the commit that asked for it stands.
CREATE TABLE noetl.action (
  action_id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  execution_id  uuid NOT NULL,
  shard         integer NOT NULL,
  body          json NOT NULL,
  attempts      integer NOT NULL DEFAULT 0,
  run_at        timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX action_due ON noetl.action (shard, run_at);

CREATE TABLE noetl.result (
  key         text PRIMARY KEY,             -- sha256 of the content
  content     bytea NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
ALTER TABLE noetl.result ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE TABLE noetl.result_use (
  execution_id  uuid NOT NULL,
  key           text NOT NULL,
  PRIMARY KEY (execution_id, key)
);
CREATE INDEX result_use_key ON noetl.result_use (key);

CREATE TABLE noetl.task_log (
  execution_id  uuid NOT NULL,
  lease_id      uuid NOT NULL,
  epoch         bigint NOT NULL,
  line          bigint NOT NULL,
  recorded_at   timestamptz NOT NULL,
  step          text,
  task          text,
  attempt       integer,
  iteration     text,
  stream        text NOT NULL,
  text          text NOT NULL,
  PRIMARY KEY (execution_id, lease_id, epoch, line)
);

-- Who may write: one process per shard, fenced by its epoch.
CREATE TABLE noetl.engine_shard (
  shard       integer PRIMARY KEY,
  epoch       bigint NOT NULL DEFAULT 0,
  holder      text,
  expires_at  timestamptz NOT NULL DEFAULT '-infinity'
);

-- The key of the capabilities that leases carry; every replica must have the same.
CREATE TABLE noetl.secret (
  name   text PRIMARY KEY,
  value  bytea NOT NULL
);
INSERT INTO noetl.secret VALUES ('capability', sha256((gen_random_uuid()::text || gen_random_uuid()::text)::bytea));

-- Takes a shard that is mine or free. Waits for commits in flight (they hold FOR SHARE), then fences them.
CREATE FUNCTION noetl.take_shard(p_shard integer, p_holder text, p_ttl interval) RETURNS bigint LANGUAGE sql AS $$
  INSERT INTO noetl.engine_shard AS s (shard, epoch, holder, expires_at)
  VALUES (p_shard, 1, p_holder, clock_timestamp() + p_ttl)
  ON CONFLICT (shard) DO UPDATE
    SET epoch = s.epoch + (s.holder IS DISTINCT FROM p_holder)::integer,
        holder = p_holder, expires_at = clock_timestamp() + p_ttl
    WHERE s.holder = p_holder OR s.holder IS NULL OR s.expires_at < clock_timestamp()
  RETURNING epoch
$$;

CREATE FUNCTION noetl.lease(p_pool text, p_owner text, p_limit integer, p_ttl interval)
RETURNS SETOF noetl.step_run LANGUAGE sql AS $$
  WITH ready AS MATERIALIZED (
    SELECT lease_id FROM noetl.step_run
    WHERE pool = p_pool AND lease_until IS NULL AND run_at <= clock_timestamp()
    ORDER BY run_at, lease_id LIMIT p_limit FOR UPDATE SKIP LOCKED)
  UPDATE noetl.step_run s
  SET epoch = s.epoch + 1, owner = p_owner, lease_until = clock_timestamp() + p_ttl
  FROM ready WHERE s.lease_id = ready.lease_id
  RETURNING s.*
$$;

-- Rows are taken in one order, the same that commits take: the two never wait for each other in a circle.
CREATE FUNCTION noetl.heartbeat(p_lease uuid[], p_epoch bigint[], p_ttl interval)
RETURNS TABLE (lease_id uuid, stop boolean) LANGUAGE sql AS $$
  WITH held AS MATERIALIZED (
    SELECT s.lease_id FROM noetl.step_run s
    JOIN unnest(p_lease, p_epoch) AS t (lease_id, epoch) ON s.lease_id = t.lease_id AND s.epoch = t.epoch
    WHERE s.lease_until IS NOT NULL
    ORDER BY s.lease_id FOR UPDATE OF s)
  UPDATE noetl.step_run s SET lease_until = clock_timestamp() + p_ttl
  FROM held WHERE s.lease_id = held.lease_id
  RETURNING s.lease_id, s.stop
$$;

-- The one transaction: all of it or nothing. Each array is a column of what the transitions bring.
CREATE FUNCTION noetl.commit(
  p_shard integer, p_epoch bigint,
  held_id uuid[], held_epoch bigint[],
  ended_id uuid[], ended_epoch bigint[],
  requeue_id uuid[], requeue_epoch bigint[],
  revoke_id uuid[], stop_id uuid[],
  x_id uuid[], x_expected bigint[], x_seq bigint[], x_state json[], x_phase text[], x_head bytea[],
  x_due timestamptz[], x_finished timestamptz[],
  e_execution uuid[], e_seq bigint[], e_id uuid[], e_name text[], e_at timestamptz[], e_source text[],
  e_step text[], e_run uuid[], e_task text[], e_attempt integer[], e_iteration text[], e_payload json[], e_hash bytea[],
  q_lease uuid[], q_execution uuid[], q_step text[], q_command json[], q_owner text[], q_ttl double precision[],
  r_execution uuid[], r_key text[], r_content bytea[],
  a_execution uuid[], a_body json[]
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  n integer;
  fenced uuid[];
BEGIN
  PERFORM 1 FROM noetl.engine_shard WHERE shard = p_shard AND epoch = p_epoch FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'not the leader of shard %', p_shard USING ERRCODE = 'NO003';
  END IF;
  -- All rows of the queue that follow are locked here, in the one order that heartbeats take as well.
  fenced := held_id || ended_id || requeue_id || revoke_id || stop_id;
  IF cardinality(fenced) > 0 THEN
    PERFORM 1 FROM noetl.step_run WHERE lease_id = ANY (fenced) ORDER BY lease_id FOR UPDATE;
  END IF;
  IF cardinality(held_id) > 0 THEN
    PERFORM 1 FROM noetl.step_run s
      JOIN unnest(held_id, held_epoch) AS t (lease_id, epoch) ON s.lease_id = t.lease_id AND s.epoch = t.epoch
      WHERE s.lease_until IS NOT NULL;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n <> cardinality(held_id) THEN
      RAISE EXCEPTION 'a lease is in other hands' USING ERRCODE = 'NO001';
    END IF;
  END IF;
  IF cardinality(ended_id) > 0 THEN
    DELETE FROM noetl.step_run s USING unnest(ended_id, ended_epoch) AS t (lease_id, epoch)
      WHERE s.lease_id = t.lease_id AND s.epoch = t.epoch AND s.lease_until IS NOT NULL;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n <> cardinality(ended_id) THEN
      RAISE EXCEPTION 'a lease is in other hands' USING ERRCODE = 'NO001';
    END IF;
  END IF;
  IF cardinality(requeue_id) > 0 THEN
    UPDATE noetl.step_run s SET owner = NULL, lease_until = NULL, stop = false, run_at = clock_timestamp()
      FROM unnest(requeue_id, requeue_epoch) AS t (lease_id, epoch)
      WHERE s.lease_id = t.lease_id AND s.epoch = t.epoch AND s.lease_until IS NOT NULL;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n <> cardinality(requeue_id) THEN
      RAISE EXCEPTION 'a lease is in other hands' USING ERRCODE = 'NO001';
    END IF;
  END IF;
  IF cardinality(revoke_id) > 0 THEN
    DELETE FROM noetl.step_run WHERE lease_id = ANY (revoke_id);
  END IF;
  IF cardinality(stop_id) > 0 THEN
    UPDATE noetl.step_run SET stop = true WHERE lease_id = ANY (stop_id);
  END IF;
  UPDATE noetl.execution x
    SET seq = t.seq, state = t.state, phase = t.phase, head = t.head, due_at = t.due,
        finished_at = t.finished, updated_at = clock_timestamp()
    FROM unnest(x_id, x_expected, x_seq, x_state, x_phase, x_head, x_due, x_finished)
      AS t (id, expected, seq, state, phase, head, due, finished)
    WHERE x.execution_id = t.id AND x.seq = t.expected AND x.shard = p_shard;
  GET DIAGNOSTICS n = ROW_COUNT;
  IF n <> cardinality(x_id) THEN
    RAISE EXCEPTION 'an execution has moved on' USING ERRCODE = 'NO002';
  END IF;
  INSERT INTO noetl.event
    SELECT * FROM unnest(e_execution, e_seq, e_id, e_name, e_at, e_source, e_step, e_run, e_task, e_attempt,
                         e_iteration, e_payload, e_hash);
  IF cardinality(r_key) > 0 THEN
    -- One that is there is young again: the sweep must not take it before its use is noted.
    INSERT INTO noetl.result AS r (key, content)
      SELECT DISTINCT ON (k) k, c FROM unnest(r_key, r_content) AS t (k, c) ORDER BY k
      ON CONFLICT (key) DO UPDATE SET created_at = clock_timestamp()
      WHERE r.created_at < clock_timestamp() - interval '10 minutes';
    INSERT INTO noetl.result_use SELECT * FROM unnest(r_execution, r_key) ON CONFLICT DO NOTHING;
  END IF;
  IF cardinality(q_lease) > 0 THEN
    INSERT INTO noetl.step_run (lease_id, execution_id, pool, command, epoch, owner, lease_until)
      SELECT t.lease_id, t.execution_id, coalesce(x.pools ->> t.step, x.pool), t.command,
             (t.owner IS NOT NULL)::integer, t.owner, clock_timestamp() + make_interval(secs => t.ttl)
      FROM unnest(q_lease, q_execution, q_step, q_command, q_owner, q_ttl)
        AS t (lease_id, execution_id, step, command, owner, ttl)
      JOIN noetl.execution x ON x.execution_id = t.execution_id;
  END IF;
  IF cardinality(a_body) > 0 THEN
    INSERT INTO noetl.action (execution_id, shard, body)
      SELECT x, p_shard, b FROM unnest(a_execution, a_body) AS t (x, b);
  END IF;
END $$;

-- Plans made while the tables were empty would stay; these functions only ever look up by index.
ALTER FUNCTION noetl.commit SET enable_seqscan = off;
ALTER FUNCTION noetl.commit SET enable_hashjoin = off;
ALTER FUNCTION noetl.commit SET enable_mergejoin = off;
ALTER FUNCTION noetl.lease SET enable_seqscan = off;
ALTER FUNCTION noetl.lease SET enable_bitmapscan = off;
ALTER FUNCTION noetl.lease SET enable_hashjoin = off;
ALTER FUNCTION noetl.lease SET enable_mergejoin = off;
ALTER FUNCTION noetl.heartbeat SET enable_seqscan = off;

-- Drops a week of the log, and all that belongs to its executions, unless one of them still runs.
CREATE FUNCTION noetl.drop_partition(p_part text) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
  low uuid;
  high uuid;
BEGIN
  SELECT (m)[1]::uuid, (m)[2]::uuid INTO low, high
    FROM pg_class c, regexp_match(pg_get_expr(c.relpartbound, c.oid), 'FROM \(''([^'']+)''\) TO \(''([^'']+)''\)') AS m
    WHERE c.oid = to_regclass('noetl.' || quote_ident(p_part));
  IF low IS NULL OR EXISTS (SELECT 1 FROM noetl.execution
                            WHERE execution_id >= low AND execution_id < high AND finished_at IS NULL) THEN
    RETURN false;
  END IF;
  EXECUTE format('DROP TABLE noetl.%I', p_part);
  DELETE FROM noetl.result_use WHERE execution_id >= low AND execution_id < high;
  DELETE FROM noetl.task_log WHERE execution_id >= low AND execution_id < high;
  DELETE FROM noetl.execution WHERE execution_id >= low AND execution_id < high;
  RETURN true;
END $$;

-- Results that nothing names. A worker stores a result before the event that names it: young ones stay.
CREATE FUNCTION noetl.sweep_results(p_older interval, p_limit integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  n integer;
BEGIN
  DELETE FROM noetl.result WHERE key IN (
    SELECT r.key FROM noetl.result r
    WHERE r.created_at < clock_timestamp() - p_older
      AND NOT EXISTS (SELECT 1 FROM noetl.result_use u WHERE u.key = r.key)
    LIMIT p_limit FOR UPDATE OF r SKIP LOCKED);
  GET DIAGNOSTICS n = ROW_COUNT;
  RETURN n;
END $$;

SELECT noetl.ensure_partitions(4);
