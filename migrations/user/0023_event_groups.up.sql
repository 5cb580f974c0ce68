-- Up to which number each consumer group of the user's stream has acknowledged: a group that is lost with Redis goes on
-- there. A group without a row has acknowledged nothing. Users from before begin behind the events they have.
CREATE TABLE event_groups (
    name         text PRIMARY KEY,
    acknowledged bigint NOT NULL,
    updated_at   timestamptz NOT NULL DEFAULT now()
);
INSERT INTO event_groups (name, acknowledged) SELECT name, given FROM unnest(ARRAY['llm', 'ws']) AS name, (
    SELECT greatest(CASE WHEN is_called THEN last_value ELSE 0 END, (SELECT max(seq) FROM event_outbox)) AS given FROM event_outbox_seq_seq
) s WHERE given > 0;
