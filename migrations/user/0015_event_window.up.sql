-- One row: how many events are kept up to a number, so that they need not be counted again, and which event counts those
-- that were withheld.
CREATE TABLE event_window (
    one      boolean PRIMARY KEY DEFAULT true CONSTRAINT event_window_one_check CHECK (one),
    up_to    bigint NOT NULL,
    kept     bigint NOT NULL,
    withheld bigint -- number of the event
);
