package db

import "context"

// audienceLock is the key of the advisory lock of a user's database that stands for who is
// blocked, follows, and is in groups: it waits for no reader, and no reader for it.
const audienceLock = 7305808869232653

const holdAudience = `SELECT pg_advisory_xact_lock_shared($1)`

// HoldAudience waits for the transaction that changes blocks, followers or groups, if one is under
// way, and keeps what is read of them from then on as it is until this one ends.
func (t *Tx) HoldAudience(ctx context.Context) error {
	_, err := t.execBeside(ctx, "hold audience", holdAudience, audienceLock)
	return err
}

// ChangeAudience waits for all transactions that hold the audience, and lets later ones wait for
// this one. A transaction that holds it already must not ask for it: two of these wait for each
// other.
func (t *Tx) ChangeAudience(ctx context.Context) error {
	t.ahead = ahead{}
	_, err := t.execBeside(ctx, "change audience", `SELECT pg_advisory_xact_lock($1)`, audienceLock)
	return err
}
