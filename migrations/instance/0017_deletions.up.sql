-- A user that is being deleted is closed to everybody, while other servers are told. deleted_at says since when.
ALTER TABLE users
    DROP CONSTRAINT users_state_check,
    ADD CONSTRAINT users_state_check CHECK (state IN ('creating', 'active', 'suspended', 'deleting', 'deleted'));
CREATE INDEX users_deleting ON users (deleted_at) WHERE state = 'deleting';
