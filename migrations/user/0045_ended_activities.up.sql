-- When each reaction ended last, too: some servers send every Like and boost of an object by an actor under one id.
ALTER TABLE ended_follows RENAME TO ended_activities;
ALTER INDEX ended_follows_pkey RENAME TO ended_activities_pkey;
INSERT INTO ended_activities (digest, ended_at)
SELECT DISTINCT substr(sha256(convert_to(object_uri, 'UTF8')), 1, 16) || substr(sha256(convert_to(actor_uri, 'UTF8')), 1, 16), now()
FROM activities
WHERE direction = 'inbound' AND type = 'Undo' AND object_uri IS NOT NULL AND raw -> 'object' ->> 'type' IN ('Like', 'Dislike', 'EmojiReact', 'Announce')
ON CONFLICT DO NOTHING;
