package actor

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Store finds remote actors in the database of the instance.
type Store interface {
	Find(ctx context.Context, id vocab.ID) (*instance.RemoteActor, error)
	FindAll(ctx context.Context, ids []vocab.ID) (map[vocab.ID]*instance.RemoteActor, error)
	FindByKey(ctx context.Context, key vocab.ID) (*instance.RemoteActor, error)
	FindByHandle(ctx context.Context, handle string) (*instance.RemoteActor, error)
}

// Keeper stores facts about remote actors in the database: their documents, when they were used,
// and whether they are gone or stale.
type Keeper interface {
	Save(ctx context.Context, r instance.RemoteActor) error
	Renew(ctx context.Context, r instance.RemoteActor) error
	NoteUse(ctx context.Context, id vocab.ID, now, since time.Time) (remembered bool, err error)
	MarkGone(ctx context.Context, id vocab.ID, now time.Time) error
	MarkStale(ctx context.Context, id vocab.ID) error
}

// Users reports the state of each user of this server.
type Users interface {
	State(ctx context.Context, u vocab.Username) (string, error)
}

// Fetcher asks other servers.
type Fetcher interface {
	Get(ctx context.Context, r transport.Request) (*transport.Response, error)
}

// Gate says whether this server may contact a host or an actor, and accept anything from it.
// Check and CheckActor return nil if so, and otherwise an error that gives the reason.
type Gate interface {
	Check(host string) error
	CheckActor(id vocab.ID) error
}

// ResolverDeps has the dependencies of a Resolver.
type ResolverDeps struct {
	Local     *Local
	Users     Users
	Store     Store
	Keeper    Keeper
	Fetch     Fetcher
	Gate      Gate
	KeyRate   policy.Rate   // of fetches of actors and keys, per registrable domain
	TTL       time.Duration // how long a copy of a remote actor is used without a new fetch
	AllowHTTP bool          // query WebFinger by http where https fails
	Now       func() time.Time
	Log       *slog.Logger
}

// Resolver finds actors, the owners of keys, objects and collections. Everything that it returns
// about another server comes from that server itself. Actors, objects and collections were fetched
// under their own ids. A Resolver is safe for concurrent use.
//
// The instance actor signs the fetches. Queries of WebFinger are not signed, and callers of Ask,
// Object and ObjectNow may choose other keys or none. The document of the instance actor is served
// without checking a signature. So if a server fetches our key while we fetch that server's key,
// neither waits for the other.
type Resolver struct {
	ResolverDeps
	*fetcher
	*flights
	*fetchBudget
	*memory
	claims  *lru[vocab.ID, claim] // by key id, for keys that have a document of their own
	handles *lru[string, confirmed]
	stale   staleActors
}

const (
	// refreshEvery is the age from which Refresh fetches a copy again.
	refreshEvery = time.Minute
	// maxActor is the size of the largest actor document that is read, in bytes.
	maxActor = 256 << 10
	// actorRoom is the greatest total size of the actor documents kept in memory, in bytes.
	actorRoom = 64 << 20
)

// NewResolver returns a resolver whose caches are empty.
func NewResolver(d ResolverDeps) *Resolver {
	return &Resolver{
		ResolverDeps: d,
		fetcher:      &fetcher{local: d.Local, client: d.Fetch},
		flights:      &flights{now: d.Now, queue: newQueue(), failures: newLRU[string, failure](remembered, 0, nil)},
		fetchBudget: &fetchBudget{standings: newStandings(d.Now), rate: policy.KeyFetches.SharedAt(d.KeyRate, d.Now),
			ownRate: policy.OwnUpdates.Shared(d.Now), objectRate: policy.ObjectFetches.Shared(d.Now)},
		memory: &memory{local: d.Local.Addresses, store: d.Store, keeper: d.Keeper, now: d.Now, actors: newLRU[vocab.ID](remembered, actorRoom, weighActor),
			used: newLRU[vocab.ID, time.Time](maxUsed, 0, nil)},
		claims:  newLRU[vocab.ID, claim](remembered, 0, nil),
		handles: newLRU[string, confirmed](remembered, 0, nil),
	}
}

func weighActor(a *instance.RemoteActor) int {
	if a.Actor == nil {
		return 0
	}
	return len(a.Actor.Raw)
}

// Resolve returns the actor that id names. It uses a local actor, or a copy in the cache or the
// store that is younger than the TTL. Otherwise it fetches the actor from its own server. If that
// server does not answer, an older copy is used. The fault is Gone after the server or the actor
// itself has said that the actor was deleted. It stays Gone until the server shows the actor
// again, and a deleted actor is fetched as often as others. The fault is Forbidden for an actor
// that the policy refuses.
func (r *Resolver) Resolve(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	return r.resolveWithin(ctx, id, r.TTL)
}

// Refresh is Resolve, but it fetches the actor unless the copy is less than a minute old.
func (r *Resolver) Refresh(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	return r.resolveWithin(ctx, id, refreshEvery)
}

// Fresh fetches the actor from its own server, and fails when that server does not answer.
func (r *Resolver) Fresh(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
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
	got, err := r.renewActor(ctx, id, have)
	if err != nil {
		return nil, fmt.Errorf("fetch actor %s: %w", id, err)
	}
	return r.presentActor(got)
}

// Known returns the copy of the actor in the cache or the store, however old it is. It returns
// nil if there is no copy, or if the actor was deleted. It fetches nothing.
func (r *Resolver) Known(ctx context.Context, id vocab.ID) (*vocab.Actor, error) {
	if r.Local.isOwn(id) {
		return r.localActor(ctx, id)
	}
	have, err := r.recallActor(ctx, id)
	if err != nil || have == nil || have.Gone {
		return nil, err
	}
	return have.Actor, nil
}

// KnownAll returns what Known returns for each of the ids, in a map by canonical id. It makes at
// most one query, and one more for each id of this server whose actor has no keys.
func (r *Resolver) KnownAll(ctx context.Context, ids []vocab.ID) (map[vocab.ID]*vocab.Actor, error) {
	known := make(map[vocab.ID]*vocab.Actor, len(ids))
	var asked []vocab.ID
	for _, id := range ids {
		id = id.Canonical()
		if _, done := known[id]; done || id == "" {
			continue
		}
		known[id] = nil
		have, ok := r.actors.get(id)
		switch {
		case r.Local.isOwn(id):
			a, err := r.localActor(ctx, id)
			if kind := fault.KindOf(err); err != nil && kind != fault.NotFound && kind != fault.NoUser {
				return nil, err
			}
			known[id] = a
		case ok && !have.Gone:
			known[id] = have.Actor
		case !ok:
			asked = append(asked, id)
		}
	}
	rows, err := r.Store.FindAll(ctx, asked)
	if err != nil {
		return nil, err
	}
	for id, row := range rows {
		if row = r.actors.getOrPut(id, row); !row.Gone { // a fetch may have cached a newer copy
			known[id] = row.Actor
		}
	}
	return known, nil
}

// resolveWithin returns the actor. A copy that is younger than the parameter age is used without a
// fetch. An actor that this server's own users ask for is stored.
func (r *Resolver) resolveWithin(ctx context.Context, id vocab.ID, age time.Duration) (*vocab.Actor, error) {
	a, err := r.findActor(ctx, id, age)
	if err == nil && policy.PayerOf(ctx) == "" {
		err = r.Keep(ctx, a, func(int) error { return nil })
	}
	return a, err
}

func (r *Resolver) findActor(ctx context.Context, id vocab.ID, age time.Duration) (*vocab.Actor, error) {
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
	if have != nil && r.isYounger(have, min(age, r.TTL)) {
		return r.presentActor(have)
	}
	got, err := r.renewActor(ctx, id, have)
	if err == nil {
		return r.presentActor(got)
	}
	if have == nil || !isPassing(err) {
		return nil, fmt.Errorf("fetch actor %s: %w", id, err)
	}
	r.Log.DebugContext(ctx, "old copy of an actor used", "actor", id, "err", err)
	return r.presentActor(have)
}

func (r *Resolver) isOwn(id vocab.ID) bool { return r.Local.isOwn(id) }

func (r *Resolver) isYounger(a *instance.RemoteActor, than time.Duration) bool {
	return r.Now().Sub(a.FetchedAt) < than
}

// presentActor returns the actor in a, or an error that says why it must not be used. The caller
// may have asked for another id, so the policy is checked for the actor's own id.
func (r *Resolver) presentActor(a *instance.RemoteActor) (*vocab.Actor, error) {
	if a.Gone {
		return nil, fault.New(fault.Gone, "the actor was deleted")
	}
	if err := r.Gate.CheckActor(a.Actor.ID); err != nil {
		return nil, err
	}
	return a.Actor, nil
}

// isPassing reports whether an error says only that the actor's server cannot be asked now, and
// nothing about the actor.
func isPassing(err error) bool {
	return fault.IsPassing(err) || fault.KindOf(err) == fault.NoHost
}

// recallActor returns the copy of an actor in the cache or the store, or nil if there is none.
func (m *memory) recallActor(ctx context.Context, id vocab.ID) (*instance.RemoteActor, error) {
	if a, ok := m.actors.get(id.Canonical()); ok {
		return a, nil
	}
	a, err := m.store.Find(ctx, id)
	if fault.KindOf(err) == fault.Invalid {
		return nil, nil // an earlier version stored a document that this version refuses, so the actor is fetched again
	}
	if err != nil || a == nil {
		return nil, err
	}
	return m.actors.getOrPut(id.Canonical(), a), nil // a fetch may have cached a newer copy
}

// renewActor fetches the actor, once for all callers that want it now. The parameter have is the
// caller's copy, or nil.
func (r *Resolver) renewActor(ctx context.Context, id vocab.ID, have *instance.RemoteActor) (*instance.RemoteActor, error) {
	return shareFlight(ctx, r.flights, "actor", id, func(ctx context.Context) (*instance.RemoteActor, error) {
		if a, ok := r.actors.get(id.Canonical()); ok && a != have && r.isYounger(a, refreshEvery) {
			return a, nil // another caller fetched it just now
		}
		return r.askServer(ctx, id, have)
	})
}

// askServer fetches the actor, and caches and stores the answer of its server.
func (r *Resolver) askServer(ctx context.Context, id vocab.ID, have *instance.RemoteActor) (*instance.RemoteActor, error) {
	if err := r.spendFetch(ctx, r.rate, id); err != nil {
		return nil, err
	}
	asked := r.Now()
	a, err := r.fetchActor(ctx, id, have)
	if fault.KindOf(err) == fault.Gone {
		return r.markGone(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return r.rememberActor(ctx, id, a, asked)
}

// fetchActor fetches the actor from its own id.
func (r *Resolver) fetchActor(ctx context.Context, id vocab.ID, have *instance.RemoteActor) (*vocab.Actor, error) {
	req := transport.Request{URL: id, Limit: maxActor, Check: checkWhole,
		Ed25519: have != nil && have.Actor != nil && have.Actor.TakesEd25519()}
	d, err := r.fetchAsInstance(ctx, req)
	if err != nil {
		return nil, err
	}
	return actorOf(d)
}

// checkWhole refuses an actor document without inbox or key. Some servers leave these out when
// they cannot read the signature. A request in the other signature dialect may then bring the
// full document.
func checkWhole(res *transport.Response) error {
	if !transport.IsActivityMediaType(res.Header.Get("Content-Type")) {
		return nil // the answer is no document, so nothing was left out of one
	}
	a, err := vocab.ParseActor(res.Body)
	if err == nil && len(a.Keys) == 0 {
		err = fault.New(fault.Invalid, "an actor needs a key")
	}
	if err == nil {
		return nil
	}
	if d, unread := vocab.ParseDoc(res.Body); unread == nil && isTombstone(d) {
		return nil
	}
	return fault.Wrap(fault.Protocol, "the peer answers with no actor with inbox and key", err)
}

// isTombstone reports whether d takes the place of a deleted document (ActivityPub §6.4).
func isTombstone(d vocab.Doc) bool {
	kind, err := d.Type()
	return err == nil && kind == "Tombstone"
}

func actorOf(d document) (*vocab.Actor, error) {
	if isTombstone(d.doc) {
		return nil, fault.New(fault.Gone, "it was deleted")
	}
	a, err := vocab.ActorOf(d.doc, d.raw)
	if err != nil {
		return nil, fault.Wrap(fault.Protocol, "the peer answers with no actor", err)
	}
	return a, nil
}

// rememberActor caches an actor under its own id and under id, by which the caller asked for it.
// The parameter asked is the time of the request. If the cache has the answer to a later request,
// that answer stays. If the actor is stored, the stored copy is updated. Otherwise the actor is
// only cached, until Keep stores it.
func (m *memory) rememberActor(ctx context.Context, id vocab.ID, a *vocab.Actor, asked time.Time) (*instance.RemoteActor, error) {
	if later, ok := m.actors.get(id.Canonical()); ok && later.FetchedAt.After(asked) {
		return later, nil
	}
	a, err := a.Reduced()
	if err != nil {
		return nil, fault.Wrap(fault.Protocol, "the peer answers with no actor that can be kept", err)
	}
	row := &instance.RemoteActor{Actor: a, FetchedAt: asked}
	if err := m.keeper.Renew(ctx, *row); err != nil {
		return nil, err
	}
	m.actors.put(id.Canonical(), row)
	m.actors.put(a.ID.Canonical(), row)
	return row, nil
}

// Bury stores that the actor deleted itself. The fault of Resolve is then Gone, until the
// actor's server shows the actor again.
func (r *Resolver) Bury(ctx context.Context, id vocab.ID) error {
	_, err := r.markGone(ctx, id)
	return err
}

func (m *memory) markGone(ctx context.Context, id vocab.ID) (*instance.RemoteActor, error) {
	row := &instance.RemoteActor{Gone: true, FetchedAt: m.now()}
	if err := m.keeper.MarkGone(ctx, id, row.FetchedAt); err != nil {
		return nil, err
	}
	m.actors.put(id.Canonical(), row)
	return row, nil
}
