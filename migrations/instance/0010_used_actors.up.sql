-- When an actor of another server last had to do with somebody here, to the day: those that nobody needs are forgotten.
ALTER TABLE actors ADD COLUMN used_at timestamptz NOT NULL DEFAULT now();
