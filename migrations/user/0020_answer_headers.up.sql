-- Which software answered, by way of which proxy, and under which id it knows the request: chosen header fields, a line each.
ALTER TABLE deliveries ADD COLUMN last_headers text; -- at most 1 KiB; null: no answer, or one from before
