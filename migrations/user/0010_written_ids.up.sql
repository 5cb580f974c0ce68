-- Ids are kept in canonical form, which is not how every peer writes its own. Peers compare ids as texts: what leaves names
-- them as they do. An engine brings the ids of rows from before to canonical form before it makes this change.
ALTER TABLE actors ADD COLUMN written text; -- the id as the actor's server writes it, where that is not uri
UPDATE actors SET written = coalesce(raw ->> 'id', raw ->> '@id') WHERE coalesce(raw ->> 'id', raw ->> '@id') <> uri;
