package actor

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// staleActors are the actors that have said of themselves that they changed, and whose old copies
// users may still have.
type staleActors struct {
	mu  sync.Mutex
	all map[vocab.ID]struct{} // by canonical id
}

func (s *staleActors) add(id vocab.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[vocab.ID]struct{}{}
	}
	if len(s.all) < remembered { // beyond, only the stored row says so
		s.all[id] = struct{}{}
	}
}

func (s *staleActors) remove(id vocab.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, id)
}

func (s *staleActors) hasStale(id vocab.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.all[id]
	return is
}

func (s *staleActors) hasAny() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all) > 0
}

// isStale reports whether the actor itself has said since that it changed. When a stale copy was
// fetched is not known.
func isStale(a *instance.RemoteActor) bool { return a.FetchedAt.Unix() <= 0 }

// IsStale reports whether an actor has said that it changed, and users may still have old copies
// of it: before something is sent to it, Resolve says where to.
func (r *Resolver) IsStale(id vocab.ID) bool { return r.stale.hasStale(id.Canonical()) }

// HasStale reports whether any actor has said so.
func (r *Resolver) HasStale() bool { return r.stale.hasAny() }

// Renewed ends that users have old copies of an actor.
func (r *Resolver) Renewed(id vocab.ID) { r.stale.remove(id.Canonical()) }

// Current is Resolve, but takes a stale copy as it is: an actor that keeps on saying that it
// changed causes no more fetches than its budget allows.
func (r *Resolver) Current(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	if !r.Local.isOwn(id) && r.Gate.CheckActor(id) == nil {
		if have, err := r.recallActor(ctx, id); err == nil && have != nil && isStale(have) {
			return r.presentActor(have)
		}
	}
	return r.Resolve(ctx, id)
}

// Changed returns the actor as its server describes it now, since it has said of itself that it
// changed; a copy that was asked for after came is as good. Each actor has a small budget for
// that, within its domain's. Beyond it, and while its server does not answer, Changed returns the
// copy as it is, which is stale from then on.
func (r *Resolver) Changed(ctx context.Context, id vocab.ID, came time.Time) (*vocab.Actor, error) {
	if r.Local.isOwn(id) {
		return r.Local.actorAt(id)
	}
	if err := r.Gate.CheckActor(id); err != nil {
		return nil, err
	}
	have, err := r.recallActor(ctx, id)
	if err != nil {
		return nil, err
	}
	if have == nil || have.FetchedAt.After(came) {
		return r.Resolve(ctx, id)
	}
	got, err := r.askAgain(ctx, id, have)
	if err != nil && isPassing(err) {
		return r.markStale(ctx, have)
	}
	if err != nil {
		return nil, err
	}
	return r.presentActor(got)
}

// askAgain asks for an actor that was asked for just now. Knowledge of its keys from elsewhere is
// forgotten: the actor may have announced another one.
func (r *Resolver) askAgain(ctx context.Context, id vocab.ID, have *instance.RemoteActor) (*instance.RemoteActor, error) {
	if ok, after := r.ownRate.Allow(string(id.Canonical()), policy.PayerOf(ctx), 0); !ok {
		return nil, fault.New(fault.RateLimited, "the actor changed too often").After(after)
	}
	// A fetch that is under way began before the change: it is not joined.
	got, err := shareFlight(ctx, r.flights, "changed actor", id, func(ctx context.Context) (*instance.RemoteActor, error) { return r.askServer(ctx, id, have) })
	if err != nil {
		return nil, err
	}
	for _, a := range []*vocab.Actor{have.Actor, got.Actor} {
		if a == nil {
			continue
		}
		for _, k := range a.Keys {
			r.claims.drop(k.ID)
		}
	}
	return got, nil
}

// markStale lets the copy count until its next use only.
func (r *Resolver) markStale(ctx context.Context, have *instance.RemoteActor) (*vocab.Actor, error) {
	if have.Gone {
		return r.presentActor(have)
	}
	id := have.Actor.ID
	if err := r.Keeper.MarkStale(ctx, id); err != nil {
		return nil, err
	}
	old := *have
	old.FetchedAt = time.Unix(0, 0)
	r.actors.put(id.Canonical(), &old)
	r.stale.add(id.Canonical())
	return r.presentActor(&old)
}
