-- How far the user has read each feed: its entries up to this place are read.
CREATE TABLE feed_marks (
    feed      text PRIMARY KEY, -- main, notifications or requests
    published timestamptz NOT NULL,
    id        uuid NOT NULL -- of the entry's row, or of the activity's where the feed has no rows of its own
);
