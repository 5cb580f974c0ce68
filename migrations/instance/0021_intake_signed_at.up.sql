-- When a waiting activity's request was signed: a Follow or Undo under an id that was used before takes effect only if it
-- was signed after the follow changed.
ALTER TABLE intake ADD COLUMN signed_at timestamptz; -- null: unknown, or its actor did not sign the request
