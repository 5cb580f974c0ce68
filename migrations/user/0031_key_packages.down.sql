DROP TABLE mls_key_packages;
