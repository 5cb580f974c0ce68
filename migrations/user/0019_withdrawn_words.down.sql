-- A job without a body cannot be sent by an engine from before.
UPDATE deliveries d SET status = 'skipped', lease_owner = NULL FROM delivery_jobs j
    WHERE j.id = d.job_id AND j.body = '' AND d.status IN ('pending', 'parked', 'failed');
ALTER TABLE deliveries DROP COLUMN tried;
