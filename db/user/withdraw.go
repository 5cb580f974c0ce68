package user

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Withdraw skips open and failed deliveries of posts to an actor. Deliveries of the user's public
// posts stay. If the parameter "of" is nil, Withdraw skips the deliveries of all other posts, also
// of forwarded ones.
// Otherwise it skips the deliveries of posts that address one of the collections in "of". But it
// leaves out posts that also address the actor itself, or one of the ids in the parameter "but".
// If a delivery also has other targets, it stays for these. An attempt that is being made now is
// completed, and counts as tried.
func (t Deliveries) Withdraw(ctx context.Context, actor vocab.ID, of, but []vocab.ID, now time.Time) error {
	_, err := t.execBeside(ctx, "withdraw deliveries", `
		UPDATE deliveries d SET updated_at = $5,
			last_error = CASE WHEN d.targets <@ ARRAY[$1] THEN 'the user shares it with the recipient no more' ELSE d.last_error END,
			status = CASE WHEN d.targets <@ ARRAY[$1] THEN 'skipped' ELSE d.status END,
			`+leaseLost+`, lease_owner = CASE WHEN d.targets <@ ARRAY[$1] THEN NULL ELSE d.lease_owner END,
			targets = CASE WHEN d.targets <@ ARRAY[$1] THEN d.targets ELSE array_remove(d.targets, $1) END
		FROM delivery_jobs j
		WHERE j.id = d.job_id AND j.type = ANY($6) AND d.status IN ('pending', 'parked', 'failed') AND $1 = ANY(d.targets)
			AND NOT $2 = ANY(j.audience) AND ($3::text[] IS NULL OR j.audience && $3 AND NOT j.audience && ($4::text[] || $1))`,
		actor, vocab.Public, formsOf(of), texts(but), now, t.types.Words)
	return err
}

// WithdrawUntried skips the deliveries of one of the user's objects that were certainly never
// tried, and returns their inboxes.
func (t Deliveries) WithdrawUntried(ctx context.Context, object vocab.ID, now time.Time) ([]vocab.ID, error) {
	type row struct{ Inbox vocab.ID }
	rows, err := collect[row](ctx, t.tx, "withdraw deliveries", `
		UPDATE deliveries d SET status = 'skipped', last_error = $3, updated_at = $2 FROM delivery_jobs j
		WHERE j.id = d.job_id AND j.object_uri = $1 AND `+ofWords(`$4`)+` AND d.status IN ('pending', 'parked', 'failed') AND NOT d.tried AND d.lease_owner IS NULL
		RETURNING d.inbox`, object, now, wasDeleted, t.types.Words)
	inboxes := make([]vocab.ID, len(rows))
	for n, r := range rows {
		inboxes[n] = r.Inbox
	}
	return inboxes, err
}

// ofWords holds for a job j of one of these types, whose bodies contain the text of an object.
func ofWords(types string) string { return `j.type = ANY(` + types + `)` }

// isAnswered holds for a delivery d with a stored answer of the host, and forgetAnswer removes
// this answer. The answer is removed because a host may answer with the text that it got.
const (
	isAnswered   = `(d.last_answer IS NOT NULL OR d.last_headers IS NOT NULL)`
	forgetAnswer = `last_answer = NULL, last_headers = NULL`
)

const (
	wasDeleted = "the post was deleted since"
	wasEdited  = "the post was edited since"
)

// queueWithdrawal removes the text of deleted objects from their deliveries and jobs. An
// attempt that is being made now is completed, and later deliveries about the object wait for
// its end.
func (t *tx) queueWithdrawal(b *pgx.Batch, uris []string, now time.Time) {
	b.Queue(`UPDATE deliveries d SET `+forgetAnswer+`, updated_at = $2,
			status = CASE WHEN `+isOwed+` AND d.lease_owner IS NULL THEN 'skipped' ELSE d.status END,
			last_error = CASE WHEN `+isOwed+` AND d.lease_owner IS NULL THEN $3 ELSE d.last_error END
		FROM delivery_jobs j WHERE j.id = d.job_id AND j.object_uri = ANY($1) AND `+ofWords(`$4`)+` AND (`+isOwed+` OR `+isAnswered+`)`, uris, now, wasDeleted, t.types.Words)
	b.Queue(`UPDATE delivery_jobs j SET body = '' WHERE j.object_uri = ANY($1) AND `+ofWords(`$2`), uris, t.types.Words)
}

// isOwed holds for a delivery d that is open, or was given up and may be retried.
const isOwed = `d.status IN ('pending', 'parked', 'failed')`

// Revision is an edit of one of the user's objects, with the new versions of stored documents.
type Revision struct {
	Object   vocab.ID
	Document json.RawMessage // the edited object
	Update   vocab.ID        // the Update activity of the edit
	Targets  []vocab.ID      // the recipients of the edit
	Create   vocab.ID        // the activity that created the object; empty when that is unknown
	Raw      json.RawMessage // the Create with the edited object, as it is stored
	Body     []byte          // the Create with the edited object, as it is sent
}

// Revise removes the old text of an object from its activities, deliveries and jobs. An open or
// failed delivery of the Create then carries the edited object, if any of the delivery's targets
// also gets the edit. Other open and failed deliveries of the old text are skipped. An attempt
// that is being made now is completed.
func (t Deliveries) Revise(ctx context.Context, r Revision, now time.Time) error {
	b := t.unsent.batch()
	b.Queue(`UPDATE deliveries d SET status = 'skipped', last_error = $4, updated_at = $3, `+leaseLost+`, lease_owner = NULL FROM delivery_jobs j
		WHERE j.id = d.job_id AND j.object_uri = $1 AND `+ofWords(`$6`)+` AND `+isOwed+`
			AND (NOT d.targets && $2 OR j.activity_uri <> $5 AND d.lease_owner IS NULL)`, r.Object, texts(r.Targets), now, wasEdited, r.Create, t.types.Words)
	b.Queue(`UPDATE deliveries d SET `+forgetAnswer+` FROM delivery_jobs j
		WHERE j.id = d.job_id AND j.object_uri = $1 AND `+ofWords(`$2`)+` AND `+isAnswered, r.Object, t.types.Words)
	b.Queue(`UPDATE delivery_jobs j SET body = CASE WHEN j.activity_uri = $2 AND EXISTS (SELECT FROM deliveries d WHERE d.job_id = j.id AND `+isOwed+` OFFSET 0) THEN $3::bytea ELSE '' END
		WHERE j.object_uri = $1 AND `+ofWords(`$4`), r.Object, r.Create, r.Body, t.types.Words)
	b.Queue(`UPDATE activities SET raw = CASE uri WHEN $2 THEN $3::jsonb ELSE jsonb_set(raw - 'proof', '{object}', $4::jsonb) END
		WHERE object_uri = $1 AND uri <> $5 AND jsonb_typeof(raw -> 'object') IN ('object', 'array') RETURNING uri`, r.Object, r.Create, r.Raw, r.Document, r.Update).Query(t.touchRows)
	b.Queue(`UPDATE activities SET raw = jsonb_set(raw, '{object,object}', $2::jsonb) WHERE `+carriesInside+` RETURNING uri`, r.Object, r.Document).Query(t.touchRows)
	return t.send(ctx, "revise object", b)
}

// carriesInside holds for an activity whose object is an activity with the object $1, as Group
// actors announce it (FEP-1b12).
const carriesInside = `raw -> 'object' @> jsonb_build_object('object', jsonb_build_object('id', $1::text))`
