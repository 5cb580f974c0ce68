package engine

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ActorFetch says how FetchActor should ask.
type ActorFetch struct {
	Resource string         // @user@host, acct:…, or a URL
	As       vocab.Username // sign as this user; zero: as the instance actor
	Unsigned bool
	Cached   bool // answer from the store when it has the actor, however old
	Refresh  bool // ask although the stored copy is fresh
}

// FetchedActor is a remote actor with how it was come by.
type FetchedActor struct {
	Handle      string          `json:"handle,omitempty"`
	Actor       json.RawMessage `json:"actor"` // as received, or from the store what is kept of it
	ID          vocab.ID        `json:"id"`
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Inbox       vocab.ID        `json:"inbox"`
	SharedInbox vocab.ID        `json:"shared_inbox,omitempty"`
	Keys        []FetchedKey    `json:"keys"`
	HTTP        *FetchedOver    `json:"http,omitempty"` // nil when it came from the store
	FetchedAt   time.Time       `json:"fetched_at"`
	StaleAt     time.Time       `json:"stale_at"`
	FromCache   bool            `json:"from_cache"`
}

// FetchedKey is a public key that the actor lists and that can be used.
type FetchedKey struct {
	ID   vocab.ID `json:"id"`
	Type string   `json:"type"` // RSA, Ed25519
	Bits int      `json:"bits,omitempty"`
}

// FetchedOver is how the answer came.
type FetchedOver struct {
	Status    int    `json:"status"`
	Millis    int64  `json:"ms"`
	Redirects int    `json:"redirects"`
	Signature string `json:"signature"` // rfc9421, cavage, none
}

// FetchActor finds an actor of another server as federation does, with every check on the way. The faults are those of
// the command line: NotFound and Gone, NoHost, Unavailable, Protocol, Forbidden.
func (e *Engine) FetchActor(ctx context.Context, f ActorFetch) (FetchedActor, error) {
	id, err := e.locate(ctx, f)
	if err != nil {
		return FetchedActor{}, err
	}
	if e.in.Local.IsLocal(id) {
		return FetchedActor{}, fault.New(fault.Usage, fmt.Sprintf("%s is an actor of this instance", id)).WithHint("lightweb user show NAME")
	}
	asked := f.Refresh || f.Unsigned || !f.As.IsZero()
	have, err := e.in.DB.RemoteActor(ctx, id)
	if err != nil {
		return FetchedActor{}, err
	}
	if have != nil && !asked && (f.Cached || e.in.Now().Sub(have.FetchedAt) < e.in.Config.Cache.ActorTTL) {
		return e.shown(have, nil), nil
	}
	row, over, err := e.ask(ctx, f, id)
	if err != nil {
		return FetchedActor{}, fmt.Errorf("fetch actor %s: %w", id, err)
	}
	if have != nil && have.Actor != nil && have.Actor.ID.Same(row.Actor.ID) {
		row.Handle = have.Handle // what WebFinger confirmed, whatever was asked for
	}
	if !f.Unsigned { // what a server shows strangers may lack what it shows others
		if err := e.in.DB.SaveRemoteActor(ctx, *row); err != nil {
			return FetchedActor{}, err
		}
	}
	return e.shown(row, over), nil
}

// locate returns the id of the actor.
func (e *Engine) locate(ctx context.Context, f ActorFetch) (vocab.ID, error) {
	if strings.HasPrefix(f.Resource, "http://") || strings.HasPrefix(f.Resource, "https://") {
		id, err := vocab.ParseID(f.Resource)
		return id.Document(), err
	}
	a, err := e.in.Actors.Handle(ctx, f.Resource)
	if err != nil {
		return "", err
	}
	return a.ID, nil
}

// ask fetches the actor now.
func (e *Engine) ask(ctx context.Context, f ActorFetch, id vocab.ID) (*db.RemoteActor, *FetchedOver, error) {
	var as *transport.Keys
	if !f.Unsigned {
		keys, err := e.signer(ctx, f.As)
		if err != nil {
			return nil, nil, err
		}
		as = &keys
	}
	a, res, err := e.in.Actors.Ask(ctx, id, as)
	if err != nil {
		return nil, nil, err
	}
	over := &FetchedOver{Status: res.Status, Millis: res.Took.Milliseconds(), Redirects: res.Redirects, Signature: "none"}
	if res.Dialect != 0 {
		over.Signature = res.Dialect.String()
	}
	return &db.RemoteActor{Actor: a, FetchedAt: e.in.Now().UTC()}, over, nil
}

func (e *Engine) signer(ctx context.Context, u vocab.Username) (transport.Keys, error) {
	if u.IsZero() {
		return e.in.Keys.Instance()
	}
	if _, err := e.in.DB.User(ctx, u); err != nil {
		return transport.Keys{}, err
	}
	return e.in.Keys.Keys(u)
}

func (e *Engine) shown(row *db.RemoteActor, over *FetchedOver) FetchedActor {
	a := row.Actor
	s := FetchedActor{Actor: a.Raw, ID: a.ID, Type: a.Type, Name: a.Name, Inbox: a.Inbox, SharedInbox: a.SharedInbox,
		Keys: []FetchedKey{}, HTTP: over, FetchedAt: row.FetchedAt, StaleAt: row.FetchedAt.Add(e.in.Config.Cache.ActorTTL), FromCache: over == nil}
	if row.Handle != "" {
		s.Handle = "@" + row.Handle
	}
	for _, listed := range a.Keys {
		key, err := actor.ListedKey(a, listed.ID)
		if err != nil {
			continue // what cannot be used is not shown
		}
		if r, ok := key.(*rsa.PublicKey); ok {
			s.Keys = append(s.Keys, FetchedKey{ID: listed.ID, Type: "RSA", Bits: r.N.BitLen()})
		} else {
			s.Keys = append(s.Keys, FetchedKey{ID: listed.ID, Type: "Ed25519"})
		}
	}
	return s
}
