DROP TABLE origin;
