-- A package of last resort is used for several groups: the content tells the Welcomes of one sender for it apart.
DROP INDEX mls_welcomes_unplaced;
CREATE UNIQUE INDEX mls_welcomes_unplaced ON mls_welcomes (key_package_ref, sender_uri, sha256(content)) WHERE conversation_id IS NULL;
