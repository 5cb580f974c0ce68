-- The milliseconds of the event's id on the stream. They never fall from one number to the next, whatever the clock does.
ALTER TABLE event_outbox ADD COLUMN ms bigint NOT NULL DEFAULT 0;
UPDATE event_outbox e SET ms = m.ms FROM (
    SELECT seq, max(floor(extract(epoch FROM created_at) * 1000)::bigint) OVER (ORDER BY seq) AS ms FROM event_outbox
) m WHERE m.seq = e.seq;

-- Events up to this number are on the stream, and may be dropped.
ALTER TABLE event_window ADD COLUMN emitted bigint NOT NULL DEFAULT 0;
