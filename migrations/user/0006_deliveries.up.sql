-- What was learnt of each delivery, for whoever asks where a post went.
ALTER TABLE delivery_jobs
    ADD COLUMN audience    text[] NOT NULL DEFAULT '{}', -- what the activity addresses: actors, collections, everybody
    ADD COLUMN signer      text NOT NULL DEFAULT 'user' CONSTRAINT delivery_jobs_signer_check CHECK (signer IN ('user', 'instance')),
    ADD COLUMN dedupe_hash bytea, -- SHA-256 over the activity's id and the inboxes: a fan-out happens once
    ADD COLUMN reached     jsonb NOT NULL DEFAULT '[]', -- deliveries done long ago, whose rows are gone: inbox, host, targets
    ADD COLUMN first_at    timestamptz; -- when the first inbox took it
UPDATE delivery_jobs SET dedupe_hash = sha256(convert_to(id::text, 'UTF8'));
ALTER TABLE delivery_jobs
    ALTER COLUMN dedupe_hash SET NOT NULL,
    ADD CONSTRAINT delivery_jobs_dedupe_hash_key UNIQUE (dedupe_hash),
    DROP CONSTRAINT delivery_jobs_activity_uri_key;
CREATE INDEX delivery_jobs_activity ON delivery_jobs (activity_uri);

ALTER TABLE deliveries
    DROP CONSTRAINT deliveries_status_check,
    ADD CONSTRAINT deliveries_status_check CHECK (status IN ('pending', 'parked', 'delivered', 'failed', 'skipped')),
    ADD COLUMN followers_digest bytea, -- of the followers behind the inbox's host, when the activity goes to the followers (FEP-8fcf)
    ADD COLUMN last_location    text,
    ADD COLUMN retry_after_s    integer,
    ADD COLUMN remote_id        text; -- what the host calls what it made of it
CREATE INDEX deliveries_job_host ON deliveries (job_id, host); -- whether an earlier delivery about the same object comes first
CREATE INDEX deliveries_open ON deliveries (host, next_at) WHERE status IN ('pending', 'parked');
