package user

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// keptAudit limits how long records of actions are stored.
const keptAudit = 180 * 24 * time.Hour

// Audit records one action that was dispatched in the user's name, or the refusals of one action
// within an hour.
type Audit struct {
	At       time.Time
	Token    uuid.UUID // zero: no token was used
	Action   string
	Params   json.RawMessage // without secrets and ciphertext
	Outcome  string          // "ok", or the code of the refusal
	Activity vocab.ID
	Times    int // how often the action was refused; 0 counts as once
}

// Add records an action that was done.
func (t Audits) Add(ctx context.Context, a Audit) error {
	_, err := t.execBeside(ctx, "record action", `INSERT INTO audit (at, token_id, action, params, outcome, activity_uri) VALUES (@at, nullif(@token, '00000000-0000-0000-0000-000000000000'::uuid), @action, @params, @outcome, nullif(@activity, ''))`,
		named{"at": a.At, "token": a.Token, "action": a.Action, "params": a.Params, "outcome": a.Outcome, "activity": a.Activity})
	return err
}

// AddRefusal counts a refused action. Within an hour a token has one row for each action and
// outcome, with the parameters of the first refusal.
func (t Audits) AddRefusal(ctx context.Context, a Audit) error {
	_, err := t.execBeside(ctx, "count refusal", `INSERT INTO audit (at, token_id, action, params, outcome, times, hour)
		VALUES (@at, nullif(@token, '00000000-0000-0000-0000-000000000000'::uuid), @action, @params, @outcome, @times, date_trunc('hour', @at::timestamptz, 'UTC'))
		ON CONFLICT (coalesce(token_id, '00000000-0000-0000-0000-000000000000'::uuid), action, outcome, hour) WHERE hour IS NOT NULL
		DO UPDATE SET times = audit.times + excluded.times`,
		named{"at": a.At, "token": a.Token, "action": a.Action, "params": a.Params, "outcome": a.Outcome, "times": max(a.Times, 1)})
	return err
}

// AuditRecord is a stored Audit.
type AuditRecord struct {
	ID uuid.UUID // orders records of the same time
	Audit
}

// AuditFilter selects records. All conditions must hold.
type AuditFilter struct {
	Action  string    // empty: all
	Outcome string    // empty: all
	Since   time.Time // zero: any time
}

// auditPlace is the id of a record in the form that a Place needs.
const auditPlace = `lpad(to_hex(id), 32, '0')::uuid`

// List returns up to n records after a place, the newest first.
func (t Audits) List(ctx context.Context, f AuditFilter, after *Place, n int) ([]AuditRecord, error) {
	p := after.orFirst()
	return collect[AuditRecord](ctx, t.tx, "read audit", `SELECT `+auditPlace+` AS id, at, coalesce(token_id, '00000000-0000-0000-0000-000000000000'::uuid) AS token, action, params,
			outcome, coalesce(activity_uri, '') AS activity, times FROM audit
		WHERE @action IN ('', action) AND @outcome IN ('', outcome) AND at >= @since AND (at, `+auditPlace+`) < (@at, @id) ORDER BY at DESC, audit.id DESC LIMIT @n`,
		named{"action": f.Action, "outcome": f.Outcome, "since": f.Since, "at": p.At, "id": p.ID, "n": n})
}

// pruneAudit removes one batch of records, the oldest first.
func pruneAudit(ctx context.Context, t *tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	n, err := t.execBeside(ctx, "prune audit", `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < $1 ORDER BY at LIMIT $2)`,
		p.Deliveries.Now.Add(-keptAudit), pruneBatch)
	if n == pruneBatch && !p.DryRun {
		next = &reached{}
	}
	return Pruned{Audits: int(n)}, next, err
}
