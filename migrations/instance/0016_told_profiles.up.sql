-- SHA-256 of the profile of which the user's followers were told last: a change that was made while nothing served is told after the start.
ALTER TABLE users ADD COLUMN told_profile bytea;
