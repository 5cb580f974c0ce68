-- A user's streams: public collections of objects, which the user fills and others may read.
CREATE TABLE streams (
    id           uuid PRIMARY KEY,
    name         text NOT NULL UNIQUE,
    tags         text[] NOT NULL,
    uri          text NOT NULL UNIQUE,
    activity_uri text NOT NULL, -- the Add that told of it
    created_at   timestamptz NOT NULL
);
CREATE TABLE stream_objects (
    stream_id    uuid NOT NULL REFERENCES streams ON DELETE CASCADE,
    object_uri   text NOT NULL,
    id           uuid NOT NULL, -- with added_at its place
    activity_uri text NOT NULL, -- the Add
    added_at     timestamptz NOT NULL,
    PRIMARY KEY (stream_id, object_uri)
);
CREATE INDEX stream_objects_place ON stream_objects (stream_id, added_at DESC, id DESC);
CREATE INDEX stream_objects_object ON stream_objects (object_uri);
