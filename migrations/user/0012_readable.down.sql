ALTER TABLE objects DROP COLUMN readable;
