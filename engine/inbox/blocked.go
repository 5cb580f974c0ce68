package inbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// markBlocked marks the activities of a batch that come from actors that the user blocks, that
// bring objects of such actors, or that the policy refuses (see isRefused and isOfRefusedMember).
// It runs before any activity of the batch is applied.
func (p *applier) markBlocked(ctx context.Context, tx *user.Tx, batch []*applying) error {
	var all []vocab.ID
	for _, x := range batch {
		all = append(all, x.actorsBehind(p.Handlers)...)
	}
	blocked, err := tx.Blocks.FindAmong(ctx, all)
	if err != nil {
		return err
	}
	for _, x := range batch {
		x.blocked = p.isRefused(x) || p.Handlers.IsApart(x.Activity) && x.isOfRefusedMember()
		for _, id := range x.actorsBehind(p.Handlers) {
			x.blocked = x.blocked || blocked[id]
		}
	}
	return nil
}

// actorsBehind returns the activity's actor and all authors of the objects it brings. A post that
// is only quoted, and the stamp that approves the quote, are not such objects.
func (x *applying) actorsBehind(handlers *handler.Registry) []vocab.ID {
	ids := []vocab.ID{x.Actor.ID}
	if by, _ := handler.Announced(x.Activity); by != "" && x.Activity.Type == vocab.Announce {
		ids = append(ids, by)
	}
	for _, id := range handlers.Needs(x.Activity) {
		if o := x.fetched[id]; o != nil {
			ids = append(ids, o.Authors()...) // a Tombstone has no author
		}
	}
	if handlers.Lookup(x.Activity).Words {
		authors, _ := x.Activity.Object.Doc.IDs("attributedTo") // validateSchema has parsed them
		ids = append(ids, authors...)
	}
	return ids
}

// isRefused reports whether the policy refuses an actor behind the activity, or the target of a
// Move. Receive has checked this already, but the policy may have changed while the activity
// waited in the journal, and an embedded object may have several authors.
func (p *applier) isRefused(x *applying) bool {
	ids := x.actorsBehind(p.Handlers)
	if x.Target != nil {
		ids = append(ids, x.Target.ID)
	}
	return slices.ContainsFunc(ids, x.Refuses)
}

// isOfRefusedMember reports whether an activity that a handler stores itself brings a message whose
// sender the policy refuses. The host that passes the message on is not refused, so isRefused is
// false. The handler decides, as for a member that the user blocks: it stores most messages,
// because the commits of other members build on them.
func (x *applying) isOfRefusedMember() bool {
	senders, _ := x.Activity.Object.Doc.IDs("attributedTo") // the handler's Check has parsed them
	return slices.ContainsFunc(senders, x.Refuses)
}

// dismissBlocked ignores an activity of a blocked actor. A deletion or an Undo still takes
// effect, so that authors can take back their content although they are blocked. For the same
// reason, an Update that makes a public post less public hides the post, whose words stay as they
// were.
func (p *applier) dismissBlocked(ctx context.Context, x *applying) (err error) {
	if p.Handlers.Lookup(x.Activity).TakesAway {
		if err := p.runHandler(ctx, x); err != nil {
			return err
		}
	}
	if x.Activity.Type == vocab.Update && !handler.UpdatesItself(x.Activity) {
		if x.Fetched, err = p.selectReadable(ctx, x); err != nil {
			return err
		}
		if err := handler.HideNarrowed(ctx, x.tx, &x.Received); err != nil {
			return err
		}
	}
	x.reason = IgnoredBlocked
	return handler.ErrIgnored
}
