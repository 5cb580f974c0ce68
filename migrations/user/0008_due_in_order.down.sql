DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (next_at) WHERE status = 'pending';
