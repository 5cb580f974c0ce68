ALTER TABLE actors DROP COLUMN used_at;
