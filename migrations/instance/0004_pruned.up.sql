-- When the user's database was last pruned as a whole, so that nobody is left out when nights are cut short.
ALTER TABLE users ADD COLUMN pruned_at timestamptz;
