package inbox

import (
	"context"
	"fmt"

	"github.com/lightweb/lightweb/db/user"
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

// fetchNeeds fetches the objects that the activity's handler needs, each from its own origin,
// because Apply never uses the network. It runs at the end of resolveAddressing, so that nobody
// can make this server contact others about activities that concern no local user.
func (f *fetcher) fetchNeeds(ctx context.Context, x *receiving) error {
	x.fetched = map[vocab.ID]*vocab.Object{}
	if f.Handlers.Lookup(x.Activity).Group {
		if err := f.fetchAnnounced(ctx, x); err != nil {
			return err
		}
		return f.fetchStamp(ctx, x)
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

// fetchNeed fetches one object, or the sender (see fetchSender). An object that does not exist, or
// that this server may not see, stays unfetched, and the handler then ignores the activity. For an
// object, fetchNeed fails only when the object's server cannot be reached now, or when this server
// is at fault. Then the peer sends the activity again.
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
	if o.OwnAuthors() { // a server can vouch for its own actors only
		x.fetched[id] = o
	}
	return nil
}

// fetchSender fetches the sender, unless a copy was fetched since the activity arrived. A sender
// that changes too often, or whose server does not answer, is fetched again a little later.
func (f *fetcher) fetchSender(ctx context.Context, x *receiving) error {
	came := x.came
	if came.IsZero() { // the activity did not arrive in a request
		came = f.Now()
	}
	var a *vocab.Actor
	err := f.runAside(ctx, x, func(ctx context.Context) (err error) {
		a, err = f.Actors.Changed(ctx, x.Actor.ID, came, true)
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

// unansweredFault returns an error if it is still open whether an object or actor exists, because
// its server cannot be reached now, or because this server failed. It returns nil if err says that
// there is no such object or actor, or that this server may not see it.
func unansweredFault(err error, public string) error {
	switch {
	case fault.IsOurs(err):
		return err
	case fault.IsPassing(err):
		return fault.Wrap(fault.Unavailable, public, err)
	}
	return nil
}

// fetchLocal reads a public object of a local user from that user's database.
func (f *fetcher) fetchLocal(ctx context.Context, x *receiving, id vocab.ID) error {
	u, _, ok := f.Local.Holder(id)
	if !ok {
		return nil
	}
	if u != x.User { // x.User is active, or Retry waits for it to be active again
		if active, err := f.Store.Instance.Users.Active(ctx, []vocab.Username{u}); err != nil || len(active) == 0 {
			return err
		}
	}
	return f.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		stored, err := tx.Objects.Find(ctx, id)
		if err != nil || stored == nil || stored.DeletedAt != nil {
			return err
		}
		o, err := stored.Parse()
		if err != nil {
			return err
		}
		stands, err := handler.Stands(ctx, tx, o)
		if err != nil || !stands || !audience.IsPublic(o.Addressing) || !o.AttributedTo.Same(f.Local.ID(u)) {
			return err
		}
		x.fetched[id] = o
		return f.takeDocument(x, len(stored.Raw))
	})
}
