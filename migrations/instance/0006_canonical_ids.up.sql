-- Ids are kept in canonical form: an actor has one row, however its id is written. An engine brings the ids of rows from
-- before to that form before it makes this change, which only says that it is done.
COMMENT ON COLUMN acquaintances.actor_uri IS 'in canonical form';
COMMENT ON COLUMN actors.uri IS 'in canonical form';
COMMENT ON COLUMN actor_keys.key_id IS 'in canonical form';
