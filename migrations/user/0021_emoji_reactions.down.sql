DELETE FROM reactions WHERE kind = 'emoji';
ALTER TABLE reactions DROP CONSTRAINT reactions_pkey;
ALTER TABLE reactions ADD CONSTRAINT reactions_pkey PRIMARY KEY (object_uri, kind, actor_uri);
ALTER TABLE reactions DROP CONSTRAINT reactions_kind_check;
ALTER TABLE reactions ADD CONSTRAINT reactions_kind_check CHECK (kind IN ('review', 'announce'));
ALTER TABLE reactions DROP COLUMN emoji;
