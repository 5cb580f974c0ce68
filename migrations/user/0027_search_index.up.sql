-- The words of objects, for the user's searches. It is filled when the user searches, never when an activity comes in: a user
-- who does not search has none of it. Nothing refers to objects, so that these change without it; a row whose object is gone is
-- found by nobody.
CREATE TABLE search_index (
    uri       text PRIMARY KEY,
    object_id uuid NOT NULL, -- of the object's row when its words were read
    revision  text NOT NULL, -- the transaction that wrote that row: another one may have changed the words
    published timestamptz NOT NULL,
    words     tsvector NOT NULL
);
CREATE INDEX search_index_words ON search_index USING gin (words);

-- How far the index has come: through the objects, and through the activities that change them, in the order of their ids.
CREATE TABLE search_progress (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    objects    uuid NOT NULL,
    activities uuid NOT NULL
);
