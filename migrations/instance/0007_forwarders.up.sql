-- Who forwarded an activity that waits: what somebody else passes on is not in person for those to whom it comes.
ALTER TABLE intake ADD COLUMN forwarders text[]; -- null: its actor sent it
