DROP INDEX deliveries_open;
DROP INDEX deliveries_job_host;
UPDATE deliveries SET status = 'pending' WHERE status = 'parked';
ALTER TABLE deliveries
    DROP COLUMN followers_digest,
    DROP COLUMN last_location,
    DROP COLUMN retry_after_s,
    DROP COLUMN remote_id,
    DROP CONSTRAINT deliveries_status_check,
    ADD CONSTRAINT deliveries_status_check CHECK (status IN ('pending', 'delivered', 'failed', 'skipped'));

DROP INDEX delivery_jobs_activity;
DELETE FROM delivery_jobs j WHERE EXISTS (SELECT FROM delivery_jobs k WHERE k.activity_uri = j.activity_uri AND k.id < j.id);
ALTER TABLE delivery_jobs
    DROP COLUMN audience,
    DROP COLUMN signer,
    DROP COLUMN dedupe_hash,
    DROP COLUMN reached,
    DROP COLUMN first_at,
    ADD CONSTRAINT delivery_jobs_activity_uri_key UNIQUE (activity_uri);
