DROP TABLE intake_waiting, serving;
DROP INDEX intake_held;
ALTER TABLE intake
    DROP COLUMN fetched,
    DROP COLUMN named,
    ADD COLUMN owner text NOT NULL DEFAULT '',
    ADD COLUMN owner_epoch bigint NOT NULL DEFAULT 0,
    ADD COLUMN due_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN attempts smallint NOT NULL DEFAULT 0;
ALTER TABLE intake
    ALTER COLUMN owner DROP DEFAULT,
    ALTER COLUMN owner_epoch DROP DEFAULT,
    ALTER COLUMN due_at DROP DEFAULT;
CREATE INDEX intake_due ON intake (due_at);
