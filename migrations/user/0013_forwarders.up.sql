-- An activity that is given back after it was set aside comes as it came: by its actor, or by somebody who forwarded it.
ALTER TABLE poison ADD COLUMN forwarders text[]; -- null: its actor sent it
