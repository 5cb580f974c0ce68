DELETE FROM mls_welcomes w USING mls_welcomes o WHERE w.conversation_id IS NULL AND o.conversation_id IS NULL AND w.key_package_ref = o.key_package_ref AND w.sender_uri = o.sender_uri AND w.id > o.id;
DROP INDEX mls_welcomes_unplaced;
CREATE UNIQUE INDEX mls_welcomes_unplaced ON mls_welcomes (key_package_ref, sender_uri) WHERE conversation_id IS NULL;
