package inbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// markBlocked marks, before anything of a batch is done, what comes from actors that the user
// blocks or the policy refuses, and what others pass on of theirs.
func (p *applier) markBlocked(ctx context.Context, tx *db.Tx, batch []*applying) error {
	var all []vocab.ID
	for _, x := range batch {
		all = append(all, actorsBehind(x)...)
	}
	blocked, err := tx.Blocked(ctx, all)
	if err != nil {
		return err
	}
	for _, x := range batch {
		x.blocked = p.isRefused(x)
		for _, id := range actorsBehind(x) {
			x.blocked = x.blocked || blocked[id]
		}
	}
	return nil
}

// actorsBehind returns whose activity it is, and whose objects it brings.
func actorsBehind(x *applying) []vocab.ID {
	ids := []vocab.ID{x.Actor.ID}
	if by, _ := handler.Announced(x.Activity); by != "" && x.Activity.Type == vocab.Announce {
		ids = append(ids, by)
	}
	for _, o := range x.fetched {
		if o.AttributedTo != "" { // which a Tombstone has not
			ids = append(ids, o.AttributedTo)
		}
	}
	return ids
}

// isRefused reports whether the policy refuses any actor that the activity brings in. Receive has
// asked before; but the policy may be younger than what waited in the journal, and who wrote what
// is embedded may be several.
func (p *applier) isRefused(x *applying) bool {
	ids := actorsBehind(x)
	for _, o := range x.fetched {
		ids = append(ids, o.Authors()...)
	}
	if x.Target != nil {
		ids = append(ids, x.Target.ID)
	}
	if p.Handlers.Lookup(x.Activity).Words {
		authors, _ := x.Activity.Object.Doc.IDs("attributedTo") // which validateSchema has read
		ids = append(ids, authors...)
	}
	return slices.ContainsFunc(ids, func(id vocab.ID) bool { return p.Gate.CheckActor(id) != nil })
}

// dismissBlocked ends an activity of a blocked actor. A deletion or an undo still takes effect: the
// block does not keep what its author takes back.
func (p *applier) dismissBlocked(ctx context.Context, x *applying) error {
	if p.Handlers.Lookup(x.Activity).TakesAway {
		if err := p.runHandler(ctx, x); err != nil {
			return err
		}
	}
	x.reason = IgnoredBlocked
	return handler.ErrIgnored
}
