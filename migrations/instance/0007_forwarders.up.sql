-- Who forwarded an activity that waits: what somebody else passes on is not addressed to its recipients in person.
ALTER TABLE intake ADD COLUMN forwarders text[]; -- null: its actor sent it
