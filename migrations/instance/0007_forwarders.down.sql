ALTER TABLE intake DROP COLUMN forwarders;
