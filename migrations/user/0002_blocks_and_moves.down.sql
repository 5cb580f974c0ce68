DROP TABLE moves, blocks;
