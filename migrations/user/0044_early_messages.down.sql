DROP TABLE mls_early;
