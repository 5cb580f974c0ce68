-- A user's password is a token that nobody has the secret of: signing in makes sessions of it. The column holds the password
-- hashed by argon2id, in PHC form; for other tokens it is NULL.
ALTER TABLE tokens ADD COLUMN password text;
CREATE UNIQUE INDEX tokens_password ON tokens (username) WHERE password IS NOT NULL;
