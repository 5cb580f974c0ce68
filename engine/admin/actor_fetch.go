package admin

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Actors are the actors of other servers.
type Actors struct{ in *instance.Instance }

// ActorFetch says which actor to fetch, and how.
type ActorFetch struct {
	Resource string         // @user@host, acct:…, or a URL
	As       vocab.Username // the signer; the instance actor if zero
	Unsigned bool
	Cached   bool // return the stored copy, however old; ignored with As, Unsigned or Refresh
	Refresh  bool // fetch even if the stored copy is fresh
}

// FetchedActor is a remote actor, and how it was fetched.
type FetchedActor struct {
	Handle string `json:"handle,omitempty"`
	// Actor is the document as received, or only the stored parts of it.
	Actor       json.RawMessage `json:"actor"`
	ID          vocab.ID        `json:"id"`
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Inbox       vocab.ID        `json:"inbox"`
	SharedInbox vocab.ID        `json:"shared_inbox,omitempty"`
	Keys        []FetchedKey    `json:"keys"`
	HTTP        *FetchedOver    `json:"http,omitempty"` // nil when the actor came from the store
	FetchedAt   time.Time       `json:"fetched_at"`
	StaleAt     time.Time       `json:"stale_at"`
	FromCache   bool            `json:"from_cache"`
}

// FetchedKey is a usable public key of the actor.
type FetchedKey struct {
	ID   vocab.ID `json:"id"`
	Type string   `json:"type"` // RSA, Ed25519
	Bits int      `json:"bits,omitempty"`
}

// FetchedOver describes the answer of the server.
type FetchedOver struct {
	Status    int    `json:"status"`
	Millis    int64  `json:"ms"`
	Redirects int    `json:"redirects"`
	Signature string `json:"signature"` // rfc9421, cavage, none
}

// Fetch finds an actor of another server as federation does, with every check. The faults are
// NotFound, Gone, NoHost, Unavailable, Protocol and Forbidden. The fault is Usage for an actor of
// this instance, and NoUser if the user f.As does not exist.
func (as Actors) Fetch(ctx context.Context, f ActorFetch) (FetchedActor, error) {
	id, err := as.findID(ctx, f)
	if err != nil {
		return FetchedActor{}, err
	}
	if as.in.Local.IsLocal(id) {
		return FetchedActor{}, fault.New(fault.Usage, fmt.Sprintf("%s is an actor of this instance", id)).WithHint("lightweb user show NAME")
	}
	asked := f.Refresh || f.Unsigned || !f.As.IsZero()
	have, err := as.in.DB.Instance.Actors.Find(ctx, id)
	if err != nil {
		return FetchedActor{}, err
	}
	if have != nil && !asked && (f.Cached || as.in.Now().Sub(have.FetchedAt) < as.in.Config.Cache.ActorTTL) {
		return as.describeActor(have, nil), nil
	}
	row, over, err := as.requestActor(ctx, f, id)
	if err != nil {
		return FetchedActor{}, fmt.Errorf("fetch actor %s: %w", id, err)
	}
	if have != nil && have.Actor != nil && have.Actor.ID.Same(row.Actor.ID) {
		row.Handle = have.Handle // WebFinger confirmed it earlier
	}
	if !f.Unsigned { // a server may show less to an unsigned request
		if err := as.in.DB.Instance.Actors.Save(ctx, *row); err != nil {
			return FetchedActor{}, err
		}
	}
	return as.describeActor(row, over), nil
}

// findID returns the id of the actor. If f.Resource is a handle, findID looks it up.
func (as Actors) findID(ctx context.Context, f ActorFetch) (vocab.ID, error) {
	if strings.HasPrefix(f.Resource, "http://") || strings.HasPrefix(f.Resource, "https://") {
		id, err := vocab.ParseID(f.Resource)
		return id.Document(), err
	}
	a, err := as.in.Actors.Handle(ctx, f.Resource)
	if err != nil {
		return "", err
	}
	return a.ID, nil
}

// requestActor fetches the actor from its server.
func (as Actors) requestActor(ctx context.Context, f ActorFetch, id vocab.ID) (*dbinstance.RemoteActor, *FetchedOver, error) {
	var signer *transport.Keys
	if !f.Unsigned {
		keys, err := as.signingKeys(ctx, f.As)
		if err != nil {
			return nil, nil, err
		}
		signer = &keys
	}
	a, res, err := as.in.Actors.Ask(ctx, id, signer)
	if err != nil {
		return nil, nil, err
	}
	over := &FetchedOver{Status: res.Status, Millis: res.Took.Milliseconds(), Redirects: res.Redirects, Signature: "none"}
	if res.Dialect != 0 {
		over.Signature = res.Dialect.String()
	}
	return &dbinstance.RemoteActor{Actor: a, FetchedAt: as.in.Now().UTC()}, over, nil
}

// signingKeys returns the keys of u, or those of the instance actor when u is zero.
func (as Actors) signingKeys(ctx context.Context, u vocab.Username) (transport.Keys, error) {
	if u.IsZero() {
		return as.in.Keys.Instance()
	}
	if _, err := as.in.DB.Instance.Users.FindUndeleted(ctx, u); err != nil {
		return transport.Keys{}, err
	}
	return as.in.Keys.Keys(u)
}

// describeActor returns the row in the form that commands show.
func (as Actors) describeActor(row *dbinstance.RemoteActor, over *FetchedOver) FetchedActor {
	a := row.Actor
	s := FetchedActor{Actor: a.Raw, ID: a.ID, Type: a.Type, Name: a.Name, Inbox: a.Inbox, SharedInbox: a.SharedInbox,
		Keys: []FetchedKey{}, HTTP: over, FetchedAt: row.FetchedAt, StaleAt: row.FetchedAt.Add(as.in.Config.Cache.ActorTTL), FromCache: over == nil}
	if row.Handle != "" {
		s.Handle = "@" + row.Handle
	}
	for _, listed := range a.Keys {
		key, err := actor.ListedKey(a, listed.ID)
		if err != nil {
			continue // an unusable key is not shown
		}
		if r, ok := key.(*rsa.PublicKey); ok {
			s.Keys = append(s.Keys, FetchedKey{ID: listed.ID, Type: "RSA", Bits: r.N.BitLen()})
		} else {
			s.Keys = append(s.Keys, FetchedKey{ID: listed.ID, Type: "Ed25519"})
		}
	}
	return s
}
