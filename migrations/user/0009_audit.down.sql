DROP INDEX audit_refusals;
ALTER TABLE audit DROP COLUMN times, DROP COLUMN hour;
