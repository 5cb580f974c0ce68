-- Who asked whom to be a friend, and the registrable domain of somebody else who asks and waits: requests of a domain are bounded.
ALTER TABLE relationships ADD COLUMN direction text NOT NULL DEFAULT '', ADD COLUMN host text NOT NULL DEFAULT '';
ALTER TABLE relationships ADD CONSTRAINT relationships_direction_check
    CHECK (CASE type WHEN 'friend' THEN direction IN ('', 'inbound', 'outbound') ELSE direction = '' END);
CREATE INDEX relationships_offered ON relationships (activity_uri) WHERE type = 'friend';
