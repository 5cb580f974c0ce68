package user

import (
	"context"
	"encoding/json"
	"time"

	"github.com/lightweb/lightweb/db/postgres"
)

// Answer is the stored answer to a dispatch with an Idempotency-Key.
type Answer struct {
	Digest []byte // SHA-256 of the request's body
	Answer json.RawMessage
}

// keptAnswers limits how long a stored answer is replayed.
const keptAnswers = 24 * time.Hour

// Find returns the answer that a dispatch with this key got within the last day, or nil if there
// is none. It deletes an older answer, so that the key is free again.
func (t Answers) Find(ctx context.Context, key string, now time.Time) (*Answer, error) {
	if t.ahead.asked.answersTo(key) {
		return t.ahead.asked.answer, nil
	}
	return one[Answer](ctx, t.tx, "read answer", findAnswer, key, now.Add(-keptAnswers))
}

const findAnswer = `WITH old AS (DELETE FROM idempotency_keys WHERE key = $1 AND created_at < $2)
	SELECT digest, answer FROM idempotency_keys WHERE key = $1 AND created_at >= $2`

// Add stores an answer for a day, with the next statement of the transaction or with its commit.
// If another transaction has added an answer with the same key and not ended yet, that statement
// waits for the other transaction. If the other one commits, this transaction fails with an error
// that TakenKey recognizes.
func (t Answers) Add(key string, a Answer, now time.Time) {
	t.unsent.later(`INSERT INTO idempotency_keys (key, digest, answer, created_at) VALUES (@key, @digest, @answer, @now)`,
		named{"key": key, "digest": a.Digest, "answer": a.Answer, "now": now})
}

// pruneAnswers removes the answers that are not replayed any more.
func pruneAnswers(ctx context.Context, t *tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	n, err := t.execBeside(ctx, "prune answers", `DELETE FROM idempotency_keys WHERE key IN (SELECT key FROM idempotency_keys WHERE created_at < $1 LIMIT $2)`,
		time.Now().Add(-keptAnswers), pruneBatch)
	if n == pruneBatch && !p.DryRun {
		next = &reached{}
	}
	return Pruned{}, next, err
}

// TakenKey reports whether err says that another dispatch has stored an answer under the
// Idempotency-Key meanwhile.
func TakenKey(err error) bool { return postgres.Violates(err, "idempotency_keys_pkey") }
