ALTER TABLE users DROP COLUMN told_profile;
