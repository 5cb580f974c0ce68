-- A delivery that was surely never tried needs no Delete after it. A lease that was lost counts as a try, since its outcome is unknown.
ALTER TABLE deliveries ADD COLUMN tried boolean NOT NULL DEFAULT true; -- of rows from before it is not known
ALTER TABLE deliveries ALTER COLUMN tried SET DEFAULT false;

-- The words of a post are gone from what was delivered of it once the post is deleted or edited. Rows from before:
UPDATE activities a SET raw = jsonb_set(a.raw - 'proof', '{object}', o.raw) FROM objects o
    WHERE o.uri = a.object_uri AND a.direction = 'outbound' AND a.type IN ('Create', 'Update') AND o.updated_at IS NOT NULL AND o.deleted_at IS NULL
    AND jsonb_typeof(a.raw -> 'object') = 'object';
UPDATE deliveries d SET status = 'skipped', last_error = 'the post was deleted or edited since', updated_at = now() FROM delivery_jobs j
    WHERE j.id = d.job_id AND d.status = 'failed' AND j.type IN ('Create', 'Update')
    AND EXISTS (SELECT FROM delivery_jobs k WHERE k.object_uri = j.object_uri AND k.type IN ('Update', 'Delete') AND k.created_at >= j.created_at AND k.id <> j.id);
UPDATE deliveries d SET last_answer = NULL FROM delivery_jobs j
    WHERE j.id = d.job_id AND d.last_answer IS NOT NULL AND d.status = 'skipped' AND j.type IN ('Create', 'Update');
UPDATE delivery_jobs j SET body = '' WHERE j.type IN ('Create', 'Update')
    AND EXISTS (SELECT FROM delivery_jobs k WHERE k.object_uri = j.object_uri AND k.type IN ('Update', 'Delete') AND k.created_at >= j.created_at AND k.id <> j.id)
    AND NOT EXISTS (SELECT FROM deliveries d WHERE d.job_id = j.id AND d.status IN ('pending', 'parked'));
