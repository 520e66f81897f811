-- Which Kubernetes object an execution belongs to. The object's uid is its identity: one that was deleted
-- and made again under the same name is another one.
CREATE TABLE noetl.object (
  uid                  text PRIMARY KEY,
  execution_id         uuid NOT NULL,
  namespace            text NOT NULL,
  name                 text NOT NULL,
  spec_key             text NOT NULL,           -- name and digest of what never changes in its spec
  playbook_generation  bigint,
  created_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
  removed_at           timestamptz,             -- when the operator removed it, its time being over
  adopted              boolean NOT NULL DEFAULT false,  -- made again after that: it shows the old outcome
  forgotten            boolean NOT NULL DEFAULT false   -- its log is gone by retention
);
CREATE INDEX object_name ON noetl.object (namespace, name);
CREATE INDEX object_execution ON noetl.object (execution_id);
CREATE INDEX object_removed ON noetl.object (namespace, spec_key) WHERE removed_at IS NOT NULL;
-- What a rerun names.
CREATE INDEX execution_name ON noetl.execution (namespace, name);

-- As before; and objects that outlive their log must not run again because of that.
CREATE OR REPLACE FUNCTION noetl.drop_partition(p_part text) RETURNS boolean LANGUAGE plpgsql
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
  UPDATE noetl.object SET forgotten = true WHERE execution_id >= low AND execution_id < high;
  RETURN true;
END $$;
