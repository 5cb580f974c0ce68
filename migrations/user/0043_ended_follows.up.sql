-- When each follow of the user ended last. Some servers send every Follow of a pair of accounts under one id, and such a
-- Follow takes effect again only if it was signed later.
CREATE TABLE ended_follows (
    digest   bytea PRIMARY KEY, -- of the id of the Follow and of its actor, as in seen
    ended_at timestamptz NOT NULL
);
INSERT INTO ended_follows (digest, ended_at)
SELECT substr(sha256(convert_to(uri, 'UTF8')), 1, 16) || substr(sha256(convert_to(actor_uri, 'UTF8')), 1, 16), now()
FROM (
    SELECT object_uri AS uri, actor_uri FROM activities
    WHERE direction = 'inbound' AND type = 'Undo' AND object_uri IS NOT NULL AND coalesce(raw -> 'object' ->> 'type', 'Follow') = 'Follow'
    UNION
    SELECT uri, actor_uri FROM activities a
    WHERE direction = 'inbound' AND type = 'Follow' AND NOT EXISTS (SELECT FROM relationships r WHERE r.type = 'follower' AND r.actor_uri = a.actor_uri AND r.activity_uri = a.uri)
) AS ended
ON CONFLICT DO NOTHING;
