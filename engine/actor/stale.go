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

// staleActors are the actors that announced a change of themselves, and of which users may still
// have old copies.
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
	if len(s.all) < remembered { // beyond that number, only the stored row says that an actor is stale
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

// isStale reports whether the time of the copy's fetch is unknown. markStale removes that time
// when the actor has announced a change and could not be fetched.
func isStale(a *instance.RemoteActor) bool { return a.FetchedAt.Unix() <= 0 }

// IsStale reports whether an actor has announced a change and could not be fetched then, so that
// users may still have old copies of it. This process knows 4096 such actors at most, and none
// from before its start. Before a delivery to a stale actor, Resolve must be called for the
// actor's current inbox.
func (r *Resolver) IsStale(id vocab.ID) bool { return r.stale.hasStale(id.Canonical()) }

// HasStale reports whether there is an actor for which IsStale is true.
func (r *Resolver) HasStale() bool { return r.stale.hasAny() }

// Renewed says that users have no old copies of an actor any more. IsStale is then false for
// that actor.
func (r *Resolver) Renewed(id vocab.ID) { r.stale.remove(id.Canonical()) }

// Current is Resolve, but it returns a stale copy as it is. So an actor that announces changes
// again and again causes no more fetches than its budget allows.
func (r *Resolver) Current(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	if !r.Local.isOwn(id) && r.Gate.CheckActor(id) == nil {
		if have, err := r.recallActor(ctx, id); err == nil && have != nil && isStale(have) {
			return r.presentActor(have)
		}
	}
	return r.Resolve(ctx, id)
}

// Changed fetches an actor that announced a change of itself. The parameter came is the time when
// the announcement arrived. If the copy was fetched after that time, or there is no copy, Changed
// does the same as Resolve. Each actor has a small budget for these fetches, within the budget of
// its domain. When the budget is spent or the server does not answer, Changed marks the copy as
// stale and returns it. If the announcement is not proven, it returns the error instead, because
// otherwise anybody could slow down the deliveries to the actor.
func (r *Resolver) Changed(ctx context.Context, id vocab.ID, came time.Time, proven bool) (*vocab.Actor, error) {
	if r.Local.isOwn(id) {
		return r.localActor(ctx, id)
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
	if err != nil && proven && isPassing(err) {
		return r.markStale(ctx, have)
	}
	if err != nil {
		return nil, err
	}
	return r.presentActor(got)
}

// askAgain fetches an actor even if it was fetched just now. It drops what other documents said
// about the actor's keys, because the actor may have announced a new key.
func (r *Resolver) askAgain(ctx context.Context, id vocab.ID, have *instance.RemoteActor) (*instance.RemoteActor, error) {
	if ok, after := r.ownRate.Allow(string(id.Canonical()), policy.PayerOf(ctx), 0); !ok {
		return nil, fault.New(fault.RateLimited, "the actor changed too often").After(after)
	}
	// This fetch has a name of its own, so it does not join a fetch that is under way. That fetch
	// may have begun before the change.
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

// markStale marks the copy as stale and returns its actor. The next Resolve fetches the actor
// again.
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
