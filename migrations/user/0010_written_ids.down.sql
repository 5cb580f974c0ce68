ALTER TABLE actors DROP COLUMN written;
