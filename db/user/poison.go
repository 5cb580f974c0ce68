package user

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Poisoned is an activity that was set aside because it could not be handled.
type Poisoned struct {
	URI        vocab.ID
	Version    vocab.ID `db:"-"` // the id of its version, which Add claims too; empty in what is read
	Actor      vocab.ID // empty when the activity cannot be parsed, or in old rows, for which no actor was stored
	Raw        []byte
	Reason     string
	CreatedAt  time.Time
	Forwarders []vocab.ID // the actors that sent the activity, unless its own actor sent it
}

// Add sets aside an activity that could not be applied, and claims its id. Of several versions
// under one id, the one that came last is set aside.
func (t Poison) Add(ctx context.Context, p Poisoned) error {
	if _, err := t.all.Activities.Claim(ctx, []Owned{{p.URI, p.Actor}, {cmp.Or(p.Version, p.URI), p.Actor}}); err != nil {
		return err
	}
	reason := strings.ReplaceAll(strings.ToValidUTF8(p.Reason, "?"), "\x00", "?") // it may quote bytes that a text column refuses
	_, err := t.execBeside(ctx, "set poison aside", `INSERT INTO poison (uri, actor_uri, raw, reason, forwarders) VALUES (@uri, @actor, @raw, @reason, @forwarders)
		ON CONFLICT (uri, actor_uri) DO UPDATE SET raw = excluded.raw, reason = excluded.reason, created_at = excluded.created_at, forwarders = excluded.forwarders`,
		named{"uri": p.URI, "actor": p.Actor, "raw": p.Raw, "reason": reason, "forwarders": idsOrNull(p.Forwarders)})
	return err
}

// List returns up to n activities that were set aside, the oldest first. It returns only
// activities that come after the one in the parameter "after". If the parameter "only" is not
// empty, it returns only activities with that id.
func (t Poison) List(ctx context.Context, only vocab.ID, after Poisoned, n int) ([]Poisoned, error) {
	return collect[Poisoned](ctx, t.tx, "list poison", `SELECT uri, actor_uri AS actor, raw, reason, created_at, forwarders FROM poison
		WHERE @only IN ('', uri) AND (created_at, uri, actor_uri) > (@at, @uri, @actor) ORDER BY created_at, uri, actor_uri LIMIT @n`,
		named{"only": only, "at": after.CreatedAt, "uri": after.URI, "actor": after.Actor, "n": n})
}

// Count returns how many activities are set aside.
func (t Poison) Count(ctx context.Context) (int, error) {
	return t.count(ctx, `SELECT count(*) FROM poison`)
}

// Drop removes an activity that was set aside, unless it was set aside again since it was read.
// Its id stays claimed.
func (t Poison) Drop(ctx context.Context, p Poisoned) error {
	_, err := t.execBeside(ctx, "drop poison", `DELETE FROM poison WHERE uri = $1 AND actor_uri = $2 AND created_at = $3`, p.URI, p.Actor, p.CreatedAt)
	return err
}
