-- Deliveries are claimed in the order in which they are due, and read in it: what is due need not be sorted.
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (next_at, id) WHERE status = 'pending';
