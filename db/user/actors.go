package user

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Save stores the user's own copy of an actor. The copy has only the fields that the engine
// reads, with ids in canonical form.
func (t Actors) Save(ctx context.Context, a *vocab.Actor, now time.Time) error {
	_, err := t.Replace(ctx, a, now)
	return err
}

// Replace does what Save does, and reports whether the copy is new or differs from the one before.
func (t Actors) Replace(ctx context.Context, a *vocab.Actor, now time.Time) (changed bool, err error) {
	a, err = a.Reduced()
	if err != nil {
		return false, fmt.Errorf("save actor: %w", err)
	}
	pem := ""
	for _, k := range a.Keys {
		if k.PEM != "" {
			pem = k.PEM
			break
		}
	}
	n, err := t.execBeside(ctx, "save actor", `INSERT INTO actors (uri, type, preferred_username, inbox, outbox, shared_inbox, public_key_pem, raw, fetched_at, written)
		VALUES (@uri, @type, @username, @inbox, @outbox, nullif(@shared, ''), @pem, @raw, @now, nullif(@written, @uri))
		ON CONFLICT (uri) DO UPDATE SET type = excluded.type, preferred_username = excluded.preferred_username, inbox = excluded.inbox,
			outbox = excluded.outbox, shared_inbox = excluded.shared_inbox, public_key_pem = excluded.public_key_pem,
			raw = excluded.raw, fetched_at = excluded.fetched_at, written = excluded.written
		WHERE actors.raw <> excluded.raw`,
		named{"uri": a.ID, "type": a.Type, "username": a.PreferredUsername, "inbox": a.Inbox, "outbox": a.Outbox, "shared": a.SharedInbox, "pem": pem,
			"raw": a.Raw, "now": now, "written": cmp.Or(a.Written, string(a.ID))})
	if n > 0 {
		t.touched.touchActor(0, a.ID)
	}
	return n > 0, err
}

// Renew does what Save does, but only for an actor of which the user has a copy.
func (t Actors) Renew(ctx context.Context, a *vocab.Actor, now time.Time) error {
	if there, err := t.Find(ctx, a.ID); err != nil || there == nil {
		return err
	}
	return t.Save(ctx, a, now)
}

// Find returns the user's own copy of an actor, nil when there is none.
func (t Actors) Find(ctx context.Context, uri vocab.ID) (*vocab.Actor, error) {
	type row struct{ Raw []byte }
	stored, err := one[row](ctx, t.tx, "read actor", `SELECT raw FROM actors WHERE uri = $1`, uri)
	if err != nil || stored == nil {
		return nil, err
	}
	a, err := vocab.ParseActor(stored.Raw)
	if err != nil {
		return nil, fmt.Errorf("read actor: %w", err)
	}
	return a, nil
}

// FindCalled returns the user's own copy of the actor that has this preferredUsername on this
// host. The case of letters does not matter. It returns nil if there is no such copy, or more
// than one.
func (t Actors) FindCalled(ctx context.Context, name, host string) (*vocab.Actor, error) {
	var found [][]byte
	err := t.query(ctx, "find actor by name", column(&found), `SELECT raw FROM actors WHERE lower(preferred_username) = lower($1) AND split_part(uri, '/', 3) = lower($2) LIMIT 2`, name, host)
	if err != nil || len(found) != 1 || name == "" {
		return nil, err
	}
	return vocab.ParseActor(found[0])
}

// IsHeld reports whether the database has a relationship with the actor, an object that the actor
// wrote, or an activity of the actor. The activity whose id is the parameter "but" does not
// count.
func (t Actors) IsHeld(ctx context.Context, actor, but vocab.ID) (holds bool, err error) {
	err = t.row(ctx, "look for what is of an actor", `SELECT EXISTS (SELECT FROM relationships WHERE actor_uri = $1) OR EXISTS (SELECT FROM activities WHERE actor_uri = $1 AND uri <> $2)
		OR EXISTS (SELECT FROM objects WHERE `+schema.WrittenBy("raw", "$1::text")+`)`, []any{string(actor), string(but)}, &holds)
	return holds, err
}

// Forget removes the relationships, reactions, pins and requests of a deleted actor, its
// activities other than Deletes, its entries in the feed, its memberships of groups, its places
// among the recipients of the user's objects (see Groups.AddUnnamed), and its copy. Blocks and
// conversations stay. The caller buries the actor's objects by Objects.BuryAll and removes its
// votes by Votes.Remove. Forget reports whether it removed anything.
func (t Actors) Forget(ctx context.Context, actor vocab.ID) (knew bool, err error) {
	for _, q := range []string{
		`DELETE FROM relationships WHERE actor_uri = $1`,
		`DELETE FROM reactions WHERE actor_uri = $1`,
		`DELETE FROM feed WHERE actor_uri = $1`,
		`DELETE FROM group_members WHERE actor_uri = $1`,
		`UPDATE unnamed_recipients SET actors = array_remove(actors, $1) WHERE actors @> ARRAY[$1::text]`,
		`DELETE FROM pins WHERE actor_uri = $1`,
		`DELETE FROM requests WHERE actor_uri = $1`,
		`DELETE FROM correspondents WHERE actor_uri = $1`,
		`DELETE FROM activities WHERE actor_uri = $1 AND direction = 'inbound' AND type <> '` + vocab.Delete + `'`,
		`DELETE FROM actors WHERE uri = $1`,
	} {
		n, err := t.exec(ctx, "forget actor", q, actor)
		if err != nil {
			return false, err
		}
		knew = knew || n > 0
	}
	return knew, nil
}
