package user

import "context"

// audienceLock is the key of an advisory lock in a user's database. The lock guards blocks,
// followers and members of groups against changes by the user's own activities. Plain reads
// neither take it nor wait for it.
const audienceLock = 7305808869232653

const holdAudience = `SELECT pg_advisory_xact_lock_shared($1)`

// HoldAudience waits for a running transaction that has called ChangeAudience, if there is one.
// Until the caller's transaction ends, later calls of ChangeAudience wait, so no activity of the
// user changes blocks, followers or groups. Received activities can still change them, and so can
// deliveries that find an actor gone.
func (t *Tx) HoldAudience(ctx context.Context) error {
	_, err := t.execBeside(ctx, "hold audience", holdAudience, audienceLock)
	return err
}

// ChangeAudience waits for all transactions that hold the audience, and makes later ones wait
// until the caller's transaction ends. A transaction that already holds the audience must not
// call ChangeAudience, because two such transactions would deadlock.
func (t *Tx) ChangeAudience(ctx context.Context) error {
	t.ahead = ahead{}
	_, err := t.execBeside(ctx, "change audience", `SELECT pg_advisory_xact_lock($1)`, audienceLock)
	return err
}
