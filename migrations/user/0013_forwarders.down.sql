ALTER TABLE poison DROP COLUMN forwarders;
