package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fetchAnnounced gets the object of an activity that a Group actor announces (FEP-1b12). It
// takes the object from the announced activity when that activity bears a valid proof by its
// actor, and otherwise from the object's own server. Nothing is fetched for a group that no
// user follows, or beyond the group's budget. The group is never told that another server does
// not answer, because servers send in order, and a failure would stop the group's deliveries.
func (f *fetcher) fetchAnnounced(ctx context.Context, x *receiving) error {
	needs := f.Handlers.Needs(x.Activity)
	followers, err := x.followersOf(ctx, f.Store, x.Actor.ID)
	switch {
	case err != nil:
		return err
	case !handler.IsGroup(x.Actor) || len(followers) == 0:
		x.unkept = IgnoredNoEffect
		return nil
	case len(needs) == 0:
		// Nothing has to be fetched, because the group itself is trusted for the activity,
		// or because no proof could make the activity take effect.
		return nil
	case f.Local.IsLocal(needs[0]):
		return f.fetchLocal(ctx, x, needs[0])
	case limitBy(f.bounds.fetchedForGroup, string(x.Actor.ID)) != nil:
		x.unkept = IgnoredGroupBudget
		return nil
	}
	if o, err := f.fetchProven(ctx, x); err != nil {
		return err
	} else if o != nil {
		x.fetched[needs[0]], x.proven = o, true
		return nil
	}
	return f.fetchShown(ctx, x, needs[0])
}

// fetchProven returns the object of an announced Create or Update if that activity bears a
// valid proof by its actor that is not outdated, and nil otherwise. An Update must give the time
// of the change, because without it an old version could replace a newer one.
func (f *fetcher) fetchProven(ctx context.Context, x *receiving) (*vocab.Object, error) {
	in := x.Activity.Object.Doc
	p, err := proof.Parse(in, f.Now())
	if err != nil || p == nil || !handler.HasWords(x.Activity.Object.Type()) || handler.IsOld(p.Created, f.Now()) || in.Sub("object") == nil {
		return nil, nil
	}
	by, id := handler.Announced(x.Activity)
	err = f.runAside(ctx, x, func(ctx context.Context) error {
		_, err := f.Verifier.Prover(ctx, p, by)
		return err
	})
	if x.Activity == nil { // no memory was free to parse it again
		return nil, err
	}
	if err != nil {
		return nil, onlyOurs(err)
	}
	o, err := vocab.ObjectOf(x.Activity.Object.Doc.Sub("object"))
	if err != nil || !o.ID.Same(id) || !o.OwnAuthors() || vocab.CheckBounds(o.Doc, "") != nil || conversation.CheckCiphertext(o.Doc) != nil ||
		x.Activity.Object.Type() == vocab.Update && o.Updated.IsZero() {
		return nil, nil
	}
	return o, nil
}

// fetchShown fetches an announced object from its server. When that server says that the object
// of an announced Delete is gone, x.fetched gets a Tombstone for it. The object of an Undo is
// fetched even if its server said a moment ago that it is gone, because an Undo of a Delete may
// come right after the Delete.
func (f *fetcher) fetchShown(ctx context.Context, x *receiving, id vocab.ID) error {
	deletes := x.Activity.Object.Type() == vocab.Delete
	fetch := f.actors.Object
	if x.Activity.Object.Type() == vocab.Undo {
		fetch = f.actors.ObjectNow
	}
	o, _, err := f.fetchBy(ctx, fetch, x, id, nil)
	if x.Activity == nil {
		return err
	}
	isGone := fault.KindOf(err) == fault.Gone || err == nil && o.Type == "Tombstone" && o.ID.Same(id)
	switch {
	case isGone && deletes:
		x.fetched[id], err = vocab.ObjectOf(vocab.Doc{"id": string(id), "type": "Tombstone"})
		return err
	case err == nil && o.OwnAuthors() && conversation.CheckCiphertext(o.Doc) == nil:
		x.fetched[id] = o
		return nil
	}
	if err := onlyOurs(err); err != nil {
		return fmt.Errorf("fetch %s: %w", id, err)
	}
	f.Log.InfoContext(ctx, "announced object not fetched", "activity", x.Activity.ID, "host", id.Host(), "err", err)
	if !deletes {
		x.unkept = IgnoredUnproven
	}
	return nil
}

// onlyOurs returns err when this server is the cause of err, and nil when another server is.
func onlyOurs(err error) error {
	if fault.IsOurs(err) {
		return err
	}
	return nil
}
