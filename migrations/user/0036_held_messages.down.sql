DROP TABLE mls_held;
