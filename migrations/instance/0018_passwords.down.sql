DROP INDEX tokens_password;
DELETE FROM tokens WHERE password IS NOT NULL;
ALTER TABLE tokens DROP COLUMN password;
