-- What others say to a user's followers waits behind what the user says.
ALTER TABLE deliveries ADD COLUMN forwarded boolean NOT NULL DEFAULT false;
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (next_at, id) WHERE status = 'pending' AND NOT forwarded;
CREATE INDEX deliveries_forwarded_due ON deliveries (next_at, id) WHERE status = 'pending' AND forwarded;
