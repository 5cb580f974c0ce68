package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fetcher fetches what handlers need from other servers.
type fetcher struct {
	Deps
	*memory
	renewer *renewer
	bounds  *bounds
}

// fetchNeeds fetches what the activity's handler needs from its own origin: Apply never touches
// the network. It is the end of resolveAddressing, so that nobody can make us ask other servers
// about what concerns no one here.
func (f *fetcher) fetchNeeds(ctx context.Context, x *receiving) error {
	x.fetched = map[vocab.ID]*vocab.Object{}
	if f.Handlers.Lookup(x.Activity).Group {
		return f.fetchAnnounced(ctx, x)
	}
	for _, id := range f.Handlers.Needs(x.Activity) {
		if err := f.fetchNeed(ctx, x, id); err != nil {
			return fmt.Errorf("fetch %s: %w", id, err)
		}
	}
	if err := f.fetchStamp(ctx, x); err != nil {
		return err
	}
	return f.fetchMove(ctx, x)
}

// fetchNeed fetches one thing. An object that is not there, or not for us, stays unfetched: the
// handler then ignores the activity. Only a server that cannot be asked now is reason to have the
// peer come again.
func (f *fetcher) fetchNeed(ctx context.Context, x *receiving, id vocab.ID) error {
	if id.Same(x.Actor.ID) {
		return f.fetchSender(ctx, x)
	}
	if f.Local.IsLocal(id) {
		return f.fetchLocal(ctx, x, id)
	}
	activity := x.Activity.ID
	o, _, err := f.fetchObject(ctx, x, id, nil)
	if fault.KindOf(err) == fault.NotFound {
		o, err = f.fetchForReader(ctx, x, id, err)
	}
	if err != nil {
		f.Log.InfoContext(ctx, "object not fetched", "activity", activity, "host", id.Host(), "err", err)
		return unansweredFault(err, "the object's server does not answer")
	}
	if err := conversation.CheckCiphertext(o.Doc); err != nil {
		f.Log.InfoContext(ctx, "object not taken", "activity", activity, "host", id.Host(), "err", err)
		return nil
	}
	if o.OwnAuthors() { // a server speaks for its own actors only
		x.fetched[id] = o
	}
	return nil
}

// fetchSender takes the sender as its server describes it since it sent the activity. One that
// changes too often, or whose server does not answer, is renewed a little later.
func (f *fetcher) fetchSender(ctx context.Context, x *receiving) error {
	came := x.came
	if came.IsZero() { // it did not come by a request
		came = f.Now()
	}
	var a *vocab.Actor
	err := f.runAside(ctx, x, func(ctx context.Context) (err error) {
		a, err = f.Actors.Changed(ctx, x.Actor.ID, came)
		return err
	})
	if err != nil {
		return unresolvedFault(err)
	}
	x.Actor = a
	if f.Actors.IsStale(a.ID) {
		f.renewer.add(a.ID)
	}
	return nil
}

// unansweredFault returns what keeps us from knowing whether something is there: a server that
// cannot be asked now, or a fault of ours. It is nil when we know that it is not there, or not
// for us.
func unansweredFault(err error, public string) error {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Busy, fault.RateLimited:
		return fault.Wrap(fault.Unavailable, public, err)
	case fault.Internal, fault.Config:
		return err
	}
	return nil
}

// fetchLocal takes a public object of a local user from its database.
func (f *fetcher) fetchLocal(ctx context.Context, x *receiving, id vocab.ID) error {
	u, _, ok := f.Local.Holder(id)
	if !ok {
		return nil
	}
	if active, err := f.Store.Instance.Users.Active(ctx, []vocab.Username{u}); err != nil || len(active) == 0 {
		return err
	}
	return f.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		stored, err := tx.Object(ctx, id)
		if err != nil || stored == nil || stored.DeletedAt != nil {
			return err
		}
		o, err := stored.Parse()
		if err != nil {
			return err
		}
		stands, err := handler.Stands(ctx, tx, o)
		if err == nil && stands && audience.IsPublic(o.Addressing) && o.AttributedTo.Same(f.Local.ID(u)) {
			x.fetched[id] = o
		}
		return err
	})
}
