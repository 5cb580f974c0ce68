ALTER TABLE hosts DROP COLUMN heard_at;
