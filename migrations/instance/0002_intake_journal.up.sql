-- The intake journal as the writers drain it: no lease by time, but one process that serves, and rows for those who
-- cannot take what is theirs now.

-- The process that serves takes the next epoch with its lock. One that lost the lock writes nothing into the journal.
CREATE TABLE serving (
    one   boolean PRIMARY KEY DEFAULT true CONSTRAINT serving_one_check CHECK (one),
    epoch bigint NOT NULL
);
INSERT INTO serving (epoch) VALUES (0);

ALTER TABLE intake
    DROP COLUMN owner,
    DROP COLUMN owner_epoch,
    DROP COLUMN due_at, -- and its index
    DROP COLUMN attempts,
    ADD COLUMN fetched text NOT NULL DEFAULT '{}', -- what the handler needs from other servers, by id, as JSON
    ADD COLUMN named   text[] NOT NULL DEFAULT '{}'; -- recipients whose own inbox it came to, or who are addressed
-- What the writers of the serving process hold; recipients is empty once it is nobody's but those who wait.
CREATE INDEX intake_held ON intake (seq) WHERE recipients <> '{}';

-- Recipients whose database cannot be used now, or who are still taking what came while it could not.
CREATE TABLE intake_waiting (
    username text NOT NULL REFERENCES users (username),
    seq      bigint NOT NULL REFERENCES intake (seq),
    PRIMARY KEY (username, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX intake_waiting_seq ON intake_waiting (seq);
