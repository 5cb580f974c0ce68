DROP INDEX deliveries_forwarded_due;
DROP INDEX deliveries_due;
ALTER TABLE deliveries DROP COLUMN forwarded;
CREATE INDEX deliveries_due ON deliveries (next_at, id) WHERE status = 'pending';
