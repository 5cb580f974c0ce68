COMMENT ON COLUMN acquaintances.actor_uri IS NULL;
COMMENT ON COLUMN actors.uri IS NULL;
COMMENT ON COLUMN actor_keys.key_id IS NULL;
