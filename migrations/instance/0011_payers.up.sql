-- Who pays for what waits in the intake journal: each sender's domain has a share of what may wait for one user.
ALTER TABLE intake ADD COLUMN payer text NOT NULL DEFAULT ''; -- empty: this server itself
ALTER TABLE intake_waiting
    ADD COLUMN payer text NOT NULL DEFAULT '',
    ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
