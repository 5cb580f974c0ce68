-- How often a token that is not trusted like its user tried to act, in each minute of the last day.
CREATE TABLE attempts (
    token_id uuid NOT NULL,
    minute   timestamptz NOT NULL,
    times    integer NOT NULL DEFAULT 1,
    PRIMARY KEY (token_id, minute)
);
