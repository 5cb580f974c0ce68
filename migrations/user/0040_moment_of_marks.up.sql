-- What arrives after a mark may be dated before it. What had arrived before this migration counts as read up to its marks.
ALTER TABLE feed_marks
    ADD COLUMN marked_at timestamptz NOT NULL DEFAULT now(); -- entries up to the place are read that had arrived by then
CREATE INDEX feed_arrived ON feed (created_at);
CREATE INDEX activities_arrived ON activities (created_at) WHERE direction = 'inbound';
