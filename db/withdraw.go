package db

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Withdraw skips the user's posts that are not public and still owed to an actor, or were given up: by the collections of,
// unless the post names the actor or one of but; all of them when of is nil. A delivery that is being made this moment is the last
// one, and counts as made.
func (t *Tx) Withdraw(ctx context.Context, actor vocab.ID, of, but []vocab.ID, now time.Time) error {
	_, err := t.execBeside(ctx, "withdraw deliveries", `
		UPDATE deliveries d SET updated_at = $5, last_error = 'the user shares it with the recipient no more',
			status = CASE WHEN d.targets <@ ARRAY[$1] THEN 'skipped' ELSE d.status END,
			attempts = CASE WHEN d.targets <@ ARRAY[$1] AND d.lease_owner IS NOT NULL THEN greatest(d.attempts, 1) ELSE d.attempts END,
			lease_owner = CASE WHEN d.targets <@ ARRAY[$1] THEN NULL ELSE d.lease_owner END,
			targets = CASE WHEN d.targets <@ ARRAY[$1] THEN d.targets ELSE array_remove(d.targets, $1) END
		FROM delivery_jobs j
		WHERE j.id = d.job_id AND j.type IN ('Create', 'Update') AND d.status IN ('pending', 'parked', 'failed') AND $1 = ANY(d.targets)
			AND NOT $2 = ANY(j.audience) AND ($3::text[] IS NULL OR j.audience && $3 AND NOT j.audience && ($4::text[] || $1))`,
		actor, vocab.Public, listed(of), texts(but), now)
	return err
}
