-- When something was last learnt of a host, or asked about it, to the day: hosts that nobody has to do with are forgotten.
ALTER TABLE hosts ADD COLUMN heard_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX hosts_heard ON hosts (heard_at);
