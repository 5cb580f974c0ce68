package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/intake"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Resume rebuilds the activities that wait in the journal as Receive had built them. Each gets
// the time of its arrival. That time also counts as the date of an activity without a date, even
// if the activity waited long. Resume contacts no other server. For a row whose activity cannot
// be parsed it returns an error in that row's result.
func (p *applier) Resume(ctx context.Context, u vocab.Username, page []instance.Waiting) ([]intake.Resumed, error) {
	resumed := make([]intake.Resumed, len(page))
	activities := make([]*vocab.Activity, len(page))
	var named []vocab.ID
	for n, w := range page {
		a, err := vocab.ParseActivity(w.Raw)
		if err != nil {
			resumed[n].Err = fmt.Errorf("read the activity again: %w", err)
			continue
		}
		activities[n] = a
		named = append(append(named, a.Actor, a.Target.ID), w.Forwarders...)
	}
	known, err := p.Actors.KnownAll(ctx, named)
	if err != nil {
		return nil, err
	}
	for n, w := range page {
		if activities[n] == nil {
			continue
		}
		if resumed[n], err = p.resume(ctx, u, w, activities[n], known); err != nil {
			return nil, err
		}
	}
	return resumed, nil
}

// resume builds the item of one row. It returns no item when the sender was deleted meanwhile,
// or when the object does not belong to the sender.
func (p *applier) resume(ctx context.Context, u vocab.Username, w instance.Waiting, a *vocab.Activity, known map[vocab.ID]*vocab.Actor) (r intake.Resumed, err error) {
	sender := known[a.Actor.Canonical()]
	if sender == nil && a.Type == vocab.Delete {
		sender = &vocab.Actor{ID: a.Actor} // Receive, too, accepts a Delete of an actor that is gone
	}
	if sender == nil {
		p.ignored.add(a.ID, a.Type, a.Actor, IgnoredSenderGone)
		return r, nil
	}
	x := &applying{raw: writeStored(a), payer: w.Payer, documents: int64(len(w.Fetched)), Received: handler.Received{User: u, Me: p.Local.ID(u), Activity: a, Actor: sender,
		Named: w.Named, Now: w.ReceivedAt}}
	x.large = int64(len(x.raw)) > p.BodyLimit
	if x.fetched, x.reader, x.Proven, err = readFetched(w.Fetched); err != nil {
		return intake.Resumed{Err: fmt.Errorf("read what was fetched again: %w", err)}, nil
	}
	switch {
	case w.Payer == "" || len(w.Forwarders) > 0:
	case w.SignedAt != nil:
		x.Signed = *w.SignedAt
	default:
		x.Signed = w.ReceivedAt.Add(-2 * signature.Window) // at the earliest, even if the database's clock is an hour fast
	}
	for _, id := range w.Forwarders {
		if f := known[id.Canonical()]; f != nil {
			x.Forwarders = append(x.Forwarders, f)
		}
	}
	if x.Target, err = p.movedTo(ctx, u, a, sender, known[a.Target.ID.Canonical()]); err != nil {
		return r, err
	}
	if !p.rivals.takeAnswer(w.Seq, x) {
		p.loseContested(x)
		return r, nil
	}
	return intake.Resumed{Item: x}, nil
}

// movedTo returns the target of a Move if u may follow the old account and the stored copies of
// both accounts confirm the Move, and nil otherwise. Receive stored these copies when the Move
// arrived. movedTo also commits that u may follow the target.
func (p *applier) movedTo(ctx context.Context, u vocab.Username, a *vocab.Activity, old, target *vocab.Actor) (*vocab.Actor, error) {
	if a.Type != vocab.Move || target == nil || !handler.Moved(old, target) {
		return nil, nil
	}
	if may, err := p.Store.Instance.Acquaintances.MayFollow(ctx, u, old.ID); err != nil || !may {
		return nil, err
	}
	return target, p.Store.Instance.Acquaintances.Add(ctx, target.ID, []vocab.Username{u}, true)
}
