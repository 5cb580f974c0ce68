DROP INDEX users_deleting;
UPDATE users SET state = 'suspended', deleted_at = NULL WHERE state = 'deleting';
ALTER TABLE users
    DROP CONSTRAINT users_state_check,
    ADD CONSTRAINT users_state_check CHECK (state IN ('creating', 'active', 'suspended', 'deleted'));
