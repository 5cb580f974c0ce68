DROP TABLE ignored;
