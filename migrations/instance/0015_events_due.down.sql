ALTER TABLE users DROP COLUMN events_due;
