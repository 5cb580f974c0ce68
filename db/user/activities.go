package user

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The directions of an activity.
const (
	Inbound  = "inbound"
	Outbound = "outbound"
)

// Activity is a stored activity.
type Activity struct {
	ID        uuid.UUID
	URI       vocab.ID
	Direction string
	Type      string
	Actor     vocab.ID
	Object    vocab.ID // empty when it has no object with an id
	Published time.Time
	Raw       json.RawMessage
}

// Parse parses the stored document. If the document cannot be parsed, the fault is Internal,
// because the client or the peer that caused the read is not to blame.
func (a Activity) Parse() (*vocab.Activity, error) {
	parsed, err := vocab.ParseActivity(a.Raw)
	if err != nil {
		return nil, fmt.Errorf("read stored %s: %w", a.Type, fault.Wrap(fault.Internal, "a stored document cannot be read", err))
	}
	return parsed, nil
}

const activityColumns = `id, uri, direction, type, actor_uri AS actor, coalesce(object_uri, '') AS object, published, raw`

// Claim records that the ids of these activities are used by their actors. Only Unclaim removes
// such a record. Claim returns the ids that were not recorded before. Only the activities with
// the returned ids may take effect. Old rows hold an id without an actor, and no actor can claim
// such an id again. If one id is given in several spellings, only the first is returned.
func (t Activities) Claim(ctx context.Context, all []Owned) (fresh map[Owned]bool, err error) {
	var won [][]byte
	if err := t.query(ctx, "claim activities", column(&won), claim, keys(all), everybodys(all)); err != nil {
		return nil, err
	}
	return firstOf(all, won), nil
}

const claim = `INSERT INTO seen (digest) SELECT DISTINCT k FROM unnest($1::bytea[], $2::bytea[]) AS c (k, before)
	WHERE (SELECT true FROM seen WHERE digest = c.before) IS NULL ORDER BY k ON CONFLICT DO NOTHING RETURNING digest`

// holdAndClaim takes the lock that HoldAudience takes, and then claims ids. It is one statement
// because a new connection must plan each statement.
const holdAndClaim = `WITH held AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared($3))
	INSERT INTO seen (digest) SELECT DISTINCT k FROM held, unnest($1::bytea[], $2::bytea[]) AS c (k, before)
	WHERE (SELECT true FROM seen WHERE digest = c.before) IS NULL ORDER BY k ON CONFLICT DO NOTHING RETURNING digest`

// firstOf returns, for each key in won, the first id in the parameter "all" that has this key.
func firstOf(all []Owned, won [][]byte) map[Owned]bool {
	left := map[string]bool{}
	for _, k := range won {
		left[string(k)] = true
	}
	fresh := map[Owned]bool{}
	for _, o := range all {
		if k := string(o.key()); left[k] {
			fresh[o] = true
			delete(left, k)
		}
	}
	return fresh
}

// Unclaim releases ids so that they can be claimed again. It is called when the activities with
// these ids turned out not to be for the user, or are to be applied again.
func (t Activities) Unclaim(ctx context.Context, all []Owned) error {
	if len(all) == 0 {
		return nil
	}
	_, err := t.execBeside(ctx, "give ids back", `DELETE FROM seen WHERE digest = ANY($1)`, append(keys(all), everybodys(all)...))
	return err
}

// endActivities stores the end of what activities did.
const endActivities = `INSERT INTO ended_activities (digest, ended_at) SELECT DISTINCT d, $2::timestamptz FROM unnest($1::bytea[]) d ORDER BY d
	ON CONFLICT (digest) DO UPDATE SET ended_at = greatest(ended_activities.ended_at, excluded.ended_at)`

// endActivity stores the time at as an end of what an activity did.
func (t *tx) endActivity(a Owned, at time.Time) {
	t.unsent.later(endActivities, keys([]Owned{a}), at)
}

// FindEnd returns when the follow of the user or the reaction that this activity made ended last.
// The time is zero if it never ended, or the activity never made one.
func (t Activities) FindEnd(ctx context.Context, a Owned) (at time.Time, err error) {
	var ends []time.Time
	if err := t.query(ctx, "read end of activity", column(&ends), `SELECT ended_at FROM ended_activities WHERE digest = $1`, a.key()); err != nil || len(ends) == 0 {
		return time.Time{}, err
	}
	return ends[0], nil
}

// Add stores an activity. An activity that is stored already is left as it was.
func (t Activities) Add(ctx context.Context, a Activity) error {
	t.unsent.activities = append(t.unsent.activities, a)
	t.touched.touch(pagesOf(a.Direction), a.URI)
	return t.countRow(ctx, len(a.Raw))
}

// pagesOf returns the pages that may show activities of a direction.
func pagesOf(direction string) Pages {
	if direction == Outbound {
		return OutboxPages
	}
	return NotificationsFeed
}

// Find returns an activity by its uri, nil when there is none. If two actors of one server use
// the uri, Find returns the activity that was stored first.
func (t Activities) Find(ctx context.Context, uri vocab.ID) (*Activity, error) {
	return one[Activity](ctx, t.tx, "read activity", `SELECT `+activityColumns+` FROM activities WHERE uri = $1 ORDER BY id LIMIT 1`, uri)
}

// FindBy returns the activity that has this uri and this actor, nil when there is none.
func (t Activities) FindBy(ctx context.Context, a Owned) (*Activity, error) {
	return one[Activity](ctx, t.tx, "read activity", `SELECT `+activityColumns+` FROM activities WHERE uri = $1 AND actor_uri = $2`, a.ID, a.Actor)
}

// FindPublic returns an activity by its uri if the activity addresses everybody. It reads nothing
// of any other activity.
func (t Activities) FindPublic(ctx context.Context, uri vocab.ID) (*Activity, error) {
	return one[Activity](ctx, t.tx, "read activity", `SELECT `+activityColumns+` FROM activities WHERE uri = $1 AND `+addressesPublic, uri)
}

// Latest returns the newest activity of a type that the actor sent about the object, or nil if
// there is none.
func (t Activities) Latest(ctx context.Context, kind string, actor, object vocab.ID) (*Activity, error) {
	return one[Activity](ctx, t.tx, "read activity", `SELECT `+activityColumns+` FROM activities
		WHERE object_uri = $3 AND type = $1 AND actor_uri = $2 ORDER BY created_at DESC, id DESC LIMIT 1`, kind, actor, object)
}

// ListObjects returns the objects of the activities that have this uri and one of these types.
// There can be several objects, because actors of one server may use the same id. ListObjects
// returns at most two of them, so two mean that there may be more. It returns none when the uri
// is the id of an object. If the parameter "by" is not empty, ListObjects looks only at
// activities of that actor. If requests is false, activities that wait among the Requests do not
// count.
func (t Activities) ListObjects(ctx context.Context, uri vocab.ID, types []string, by vocab.ID, requests bool) (objects []vocab.ID, err error) {
	err = t.query(ctx, "read activity", column(&objects), `SELECT DISTINCT a.object_uri FROM activities a WHERE a.uri = @uri AND a.type = ANY(@types)
		AND a.object_uri IS NOT NULL AND (@by = '' OR a.actor_uri = @by) AND (@requests OR NOT `+isRequest+`)
		AND NOT EXISTS (SELECT FROM objects WHERE uri = @uri) LIMIT 2`, named{"uri": uri, "types": types, "by": by, "requests": requests})
	return objects, err
}

// LatestUndo returns the actor's newest Undo of an activity that has this type and this object,
// nil when there is none.
func (t Activities) LatestUndo(ctx context.Context, kind string, actor, object vocab.ID) (*Activity, error) {
	return one[Activity](ctx, t.tx, "read activity", `SELECT `+activityColumns+` FROM activities
		WHERE raw -> 'object' @> jsonb_build_object('type', $1::text, 'object', $3::text) AND type = '`+vocab.Undo+`' AND actor_uri = $2
		ORDER BY created_at DESC, id DESC LIMIT 1`, kind, actor, object)
}

// HasOther reports whether the actor has sent another activity of a type about the object than the
// one with this uri.
func (t Activities) HasOther(ctx context.Context, kind string, uri, actor, object vocab.ID) (there bool, err error) {
	err = t.row(ctx, "look for another activity", `SELECT EXISTS (SELECT FROM activities WHERE object_uri = @object AND type = @kind AND actor_uri = @actor AND uri <> @uri)`,
		[]any{named{"object": object, "kind": kind, "actor": actor, "uri": uri}}, &there)
	return there, err
}

// Remove removes an activity and its feed entry. Its id stays claimed. If the activity is a
// request, Remove also removes its object, because nothing would hide the object any more. But
// the object stays if another stored activity is about it.
func (t Activities) Remove(ctx context.Context, a Owned) error {
	var words []vocab.ID
	err := t.query(ctx, "remove words of request", column(&words), removeWords, a.ID, a.Actor)
	if err != nil {
		return err
	}
	for _, id := range words {
		t.ahead.forgetObject(id)
		t.touched.Everything = true
	}
	t.touched.touch(feeds|OutboxPages, a.ID)
	if _, err := t.execBeside(ctx, "remove from feed", `DELETE FROM feed WHERE actor_uri = $2 AND activity_uri = $1`, a.ID, a.Actor); err != nil {
		return err
	}
	_, err = t.execBeside(ctx, "remove activity", `DELETE FROM activities WHERE uri = $1 AND actor_uri = $2`, a.ID, a.Actor)
	return err
}

var removeWords = `DELETE FROM objects o USING activities a WHERE a.uri = $1 AND a.actor_uri = $2 AND ` + isRequest + ` AND o.uri = a.object_uri
	AND ` + schema.WrittenBy("o.raw", "a.actor_uri") + `
	AND NOT EXISTS (SELECT FROM activities b WHERE b.object_uri = o.uri AND (b.uri, b.actor_uri) <> (a.uri, a.actor_uri)) RETURNING o.uri`

// List returns up to n activities of one direction after a place, the newest first. It leaves out
// an activity of the types Types.ShowObject if its object was deleted since. If the parameter
// "to" is not nil, it returns only activities whose field "to" or "cc" names one of these ids.
func (t Activities) List(ctx context.Context, direction string, to []vocab.ID, after *Place, n int) ([]Activity, error) {
	p := after.orFirst()
	return collect[Activity](ctx, t.tx, "list activities", `SELECT `+activityColumns+` FROM activities
		WHERE direction = @direction AND (published, id) < (@at, @id) AND `+addressesAny+` AND `+aboutLiving+`
		ORDER BY published DESC, id DESC LIMIT @n`, named{"direction": direction, "to": formsOf(to), "gone": t.types.ShowObject, "at": p.At, "id": p.ID, "n": n})
}

// Count counts the activities that List returns.
func (t Activities) Count(ctx context.Context, direction string, to []vocab.ID) (int, error) {
	return t.count(ctx, `SELECT count(*) FROM activities
		WHERE direction = @direction AND `+addressesAny+` AND `+aboutLiving, named{"direction": direction, "to": formsOf(to), "gone": t.types.ShowObject})
}

// aboutLiving is false for a row whose activity has one of the types @gone and whose object
// was deleted since.
const aboutLiving = `(type <> ALL(@gone)
	OR NOT EXISTS (SELECT FROM objects o WHERE o.uri = activities.object_uri AND o.deleted_at IS NOT NULL))`

func (t *tx) count(ctx context.Context, query string, args ...any) (n int, err error) {
	err = t.row(ctx, "count rows", query, args, &n)
	return n, err
}
