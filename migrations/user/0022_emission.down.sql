ALTER TABLE event_window DROP COLUMN emitted;
ALTER TABLE event_outbox DROP COLUMN ms;
