DROP TABLE ended_follows;
