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
		UPDATE deliveries d SET updated_at = @now,
			last_error = CASE WHEN d.targets <@ ARRAY[@actor] THEN 'the user shares it with the recipient no more' ELSE d.last_error END,
			status = CASE WHEN d.targets <@ ARRAY[@actor] THEN 'skipped' ELSE d.status END,
			`+leaseLost+`, lease_owner = CASE WHEN d.targets <@ ARRAY[@actor] THEN NULL ELSE d.lease_owner END,
			targets = CASE WHEN d.targets <@ ARRAY[@actor] THEN d.targets ELSE array_remove(d.targets, @actor) END
		FROM delivery_jobs j
		WHERE j.id = d.job_id AND j.type = ANY(@words) AND d.status IN ('pending', 'parked', 'failed') AND @actor = ANY(d.targets)
			AND NOT @public = ANY(j.audience) AND (@of::text[] IS NULL OR j.audience && @of AND NOT j.audience && (@but::text[] || @actor))`,
		named{"actor": actor, "public": vocab.Public, "of": formsOf(of), "but": texts(but), "now": now, "words": t.types.Words})
	return err
}

// WithdrawUntried skips the deliveries of one of the user's objects that were certainly never
// tried, and returns their inboxes.
func (t Deliveries) WithdrawUntried(ctx context.Context, object vocab.ID, now time.Time) (inboxes []vocab.ID, err error) {
	err = t.query(ctx, "withdraw deliveries", column(&inboxes), `
		UPDATE deliveries d SET status = 'skipped', last_error = @why, updated_at = @now FROM delivery_jobs j
		WHERE j.id = d.job_id AND j.object_uri = @object AND `+ofWords+` AND d.status IN ('pending', 'parked', 'failed') AND NOT d.tried AND d.lease_owner IS NULL
		RETURNING d.inbox`, named{"object": object, "now": now, "why": wasDeleted, "words": t.types.Words})
	return inboxes, err
}

// ofWords holds for a job j of one of the types @words, whose bodies contain the text of an object.
const ofWords = `j.type = ANY(@words)`

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
	b.Queue(`UPDATE deliveries d SET `+forgetAnswer+`, updated_at = @now,
			status = CASE WHEN `+isOwed+` AND d.lease_owner IS NULL THEN 'skipped' ELSE d.status END,
			last_error = CASE WHEN `+isOwed+` AND d.lease_owner IS NULL THEN @why ELSE d.last_error END
		FROM delivery_jobs j WHERE j.id = d.job_id AND j.object_uri = ANY(@uris) AND `+ofWords+` AND (`+isOwed+` OR `+isAnswered+`)`,
		named{"uris": uris, "now": now, "why": wasDeleted, "words": t.types.Words})
	b.Queue(`UPDATE delivery_jobs j SET body = '' WHERE j.object_uri = ANY(@uris) AND `+ofWords, named{"uris": uris, "words": t.types.Words})
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
	b.Queue(`UPDATE deliveries d SET status = 'skipped', last_error = @why, updated_at = @now, `+leaseLost+`, lease_owner = NULL FROM delivery_jobs j
		WHERE j.id = d.job_id AND j.object_uri = @object AND `+ofWords+` AND `+isOwed+`
			AND (NOT d.targets && @targets OR j.activity_uri <> @create AND d.lease_owner IS NULL)`,
		named{"object": r.Object, "targets": texts(r.Targets), "now": now, "why": wasEdited, "create": r.Create, "words": t.types.Words})
	b.Queue(`UPDATE deliveries d SET `+forgetAnswer+` FROM delivery_jobs j
		WHERE j.id = d.job_id AND j.object_uri = @object AND `+ofWords+` AND `+isAnswered, named{"object": r.Object, "words": t.types.Words})
	b.Queue(`UPDATE delivery_jobs j SET body = CASE WHEN j.activity_uri = @create AND EXISTS (SELECT FROM deliveries d WHERE d.job_id = j.id AND `+isOwed+` OFFSET 0) THEN @body::bytea ELSE '' END
		WHERE j.object_uri = @object AND `+ofWords, named{"object": r.Object, "create": r.Create, "body": r.Body, "words": t.types.Words})
	b.Queue(`UPDATE activities SET raw = CASE uri WHEN @create THEN @raw::jsonb ELSE jsonb_set(raw - 'proof', '{object}', @document::jsonb) END
		WHERE object_uri = @object AND uri <> @update AND jsonb_typeof(raw -> 'object') IN ('object', 'array') RETURNING uri`,
		named{"object": r.Object, "create": r.Create, "raw": r.Raw, "document": r.Document, "update": r.Update}).Query(t.touchRows)
	b.Queue(`UPDATE activities SET raw = jsonb_set(raw, '{object,object}', @document::jsonb) WHERE `+carriesInside+` RETURNING uri`,
		named{"object": r.Object, "document": r.Document}).Query(t.touchRows)
	return t.send(ctx, "revise object", b)
}

// carriesInside holds for an activity whose object is an activity with the object @object, as Group
// actors announce it (FEP-1b12).
const carriesInside = `raw -> 'object' @> jsonb_build_object('object', jsonb_build_object('id', @object::text))`
