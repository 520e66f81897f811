-- What people ask of an execution that another process leads: the leader takes each up within a second.
-- Applying one twice changes nothing, so it is answered after it was applied; whoever asked removes it.
CREATE TABLE noetl.wish (
  wish_id       uuid PRIMARY KEY,
  execution_id  uuid NOT NULL,
  body          json NOT NULL,
  answer        json,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX wish_open ON noetl.wish (execution_id) WHERE answer IS NULL;
