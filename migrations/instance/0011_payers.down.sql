ALTER TABLE intake_waiting DROP COLUMN payer, DROP COLUMN bytes;
ALTER TABLE intake DROP COLUMN payer;
