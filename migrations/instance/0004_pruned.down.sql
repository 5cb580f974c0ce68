ALTER TABLE users DROP COLUMN pruned_at;
