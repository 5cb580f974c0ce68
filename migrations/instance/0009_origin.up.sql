-- The origin of every id of this instance: other servers know these ids for good, so it cannot change once one has left.
CREATE TABLE origin (
    one        boolean PRIMARY KEY DEFAULT true CONSTRAINT origin_one_check CHECK (one),
    public_url text NOT NULL,
    set_at     timestamptz NOT NULL DEFAULT now()
);
