-- Reactions by emoji: an actor has at most one with each emoji to an object. The others have none.
ALTER TABLE reactions ADD COLUMN emoji text NOT NULL DEFAULT '';
ALTER TABLE reactions DROP CONSTRAINT reactions_kind_check;
ALTER TABLE reactions ADD CONSTRAINT reactions_kind_check CHECK (kind IN ('review', 'announce', 'emoji') AND (kind = 'emoji') = (emoji <> ''));
ALTER TABLE reactions DROP CONSTRAINT reactions_pkey;
ALTER TABLE reactions ADD CONSTRAINT reactions_pkey PRIMARY KEY (object_uri, kind, actor_uri, emoji);
