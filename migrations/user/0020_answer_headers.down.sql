ALTER TABLE deliveries DROP COLUMN last_headers;
