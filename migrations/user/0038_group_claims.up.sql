-- An MLS group has one conversation among those that the user takes part in. An invitation that no device has taken may name the
-- group of any other one: it claims nothing.
ALTER TABLE conversations
    ADD COLUMN confirmed boolean NOT NULL DEFAULT true; -- the user hosts it, is one of its two, or a device of the user has joined
UPDATE conversations c SET confirmed = false FROM mls_joined j WHERE j.id = c.id AND NOT j.confirmed;
ALTER TABLE mls_joined DROP COLUMN confirmed;
ALTER TABLE conversations DROP CONSTRAINT conversations_group_id_key;
CREATE UNIQUE INDEX conversations_claimed ON conversations (group_id) WHERE confirmed;
CREATE INDEX conversations_invited ON conversations (group_id) WHERE NOT confirmed;
