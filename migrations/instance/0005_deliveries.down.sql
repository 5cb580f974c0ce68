DROP TABLE relays;
DROP TABLE parked;
DROP INDEX hosts_changed;
ALTER TABLE hosts
    DROP COLUMN software,
    DROP COLUMN failures,
    DROP COLUMN failing_since,
    DROP COLUMN failed_at,
    DROP COLUMN failure,
    DROP COLUMN delivered_at,
    DROP COLUMN closed_until,
    DROP COLUMN probes,
    DROP COLUMN inactive_at,
    DROP COLUMN paused_at,
    DROP COLUMN changed_at;
DROP INDEX users_next_due;
ALTER TABLE users DROP COLUMN next_due;
