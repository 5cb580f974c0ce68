package engine

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
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
	Actor       json.RawMessage `json:"actor"` // as received
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
	id, handle, err := e.locate(ctx, f)
	if err != nil {
		return FetchedActor{}, err
	}
	if e.local.IsLocal(id) {
		return FetchedActor{}, fault.New(fault.Usage, fmt.Sprintf("%s is an actor of this instance", id)).WithHint("lightweb user show NAME")
	}
	asked := f.Refresh || f.Unsigned || !f.As.IsZero()
	if row, err := e.db.RemoteActor(ctx, id); err != nil {
		return FetchedActor{}, err
	} else if row != nil && !asked && (f.Cached || e.now().Sub(row.FetchedAt) < e.cfg.Cache.ActorTTL) {
		return e.shown(row, nil), nil
	}
	row, over, err := e.ask(ctx, f, id)
	if err != nil {
		return FetchedActor{}, fmt.Errorf("fetch actor %s: %w", id, err)
	}
	row.Handle = handle
	if !f.Unsigned { // what a server shows strangers may lack what it shows others
		if err := e.db.SaveRemoteActor(ctx, *row); err != nil {
			return FetchedActor{}, err
		}
	}
	return e.shown(row, over), nil
}

// locate returns the id of the actor, and its handle when it was asked for by that.
func (e *Engine) locate(ctx context.Context, f ActorFetch) (vocab.ID, string, error) {
	if strings.HasPrefix(f.Resource, "http://") || strings.HasPrefix(f.Resource, "https://") {
		id, err := vocab.ParseID(f.Resource)
		return id, "", err
	}
	a, err := e.actors.Handle(ctx, f.Resource)
	if err != nil {
		return "", "", err
	}
	handle := strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(f.Resource), "acct:"), "@")
	return a.ID, handle, nil
}

// ask fetches the actor, once.
func (e *Engine) ask(ctx context.Context, f ActorFetch, id vocab.ID) (*db.RemoteActor, *FetchedOver, error) {
	req := transport.Request{URL: id.Document()}
	if !f.Unsigned {
		keys, err := e.signer(ctx, f.As)
		if err != nil {
			return nil, nil, err
		}
		req.As = &keys
	}
	res, err := e.client.Get(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	if err := answered(res); err != nil {
		return nil, nil, err
	}
	a, err := vocab.ParseActor(res.Body)
	if err != nil {
		return nil, nil, fault.Wrap(fault.Protocol, "the answer is no actor", err)
	}
	if !a.ID.SameOrigin(res.URL) || !a.ID.Same(id.Document()) && !a.ID.Same(res.URL) {
		return nil, nil, fault.New(fault.Protocol, fmt.Sprintf("the answer is the actor %s", a.ID)).WithHint("lightweb actor fetch " + string(a.ID))
	}
	over := &FetchedOver{Status: res.Status, Millis: res.Took.Milliseconds(), Redirects: res.Redirects, Signature: "none"}
	if res.Dialect != 0 {
		over.Signature = res.Dialect.String()
	}
	return &db.RemoteActor{Actor: a, FetchedAt: e.now().UTC()}, over, nil
}

func (e *Engine) signer(ctx context.Context, u vocab.Username) (transport.Keys, error) {
	if u.IsZero() {
		return e.keys.Instance()
	}
	if _, err := e.db.User(ctx, u); err != nil {
		return transport.Keys{}, err
	}
	return e.keys.Keys(u)
}

// answered turns a status that is no answer into its fault.
func answered(res *transport.Response) error {
	switch {
	case res.Status == 200 && transport.MediaTypeIsActivity(res.Header.Get("Content-Type")):
		return nil
	case res.Status == 200:
		return fault.New(fault.Protocol, fmt.Sprintf("the answer is no ActivityStreams document but %.64q", res.Header.Get("Content-Type")))
	case res.Status == 404:
		return fault.New(fault.NotFound, "the server knows no such actor (404)")
	case res.Status == 410:
		return fault.New(fault.Gone, "the actor was deleted (410)")
	case res.Status == 401 || res.Status == 403:
		return fault.New(fault.Forbidden, fmt.Sprintf("the server refuses us (%d)", res.Status))
	case res.Status == 429 || res.Status >= 500:
		return fault.New(fault.Unavailable, fmt.Sprintf("the server cannot answer now (%d)", res.Status))
	default:
		return fault.New(fault.Protocol, fmt.Sprintf("the server answered %d", res.Status))
	}
}

func (e *Engine) shown(row *db.RemoteActor, over *FetchedOver) FetchedActor {
	a := row.Actor
	s := FetchedActor{Actor: a.Raw, ID: a.ID, Type: a.Type, Name: a.Name, Inbox: a.Inbox, SharedInbox: a.SharedInbox,
		Keys: []FetchedKey{}, HTTP: over, FetchedAt: row.FetchedAt, StaleAt: row.FetchedAt.Add(e.cfg.Cache.ActorTTL), FromCache: over == nil}
	if row.Handle != "" {
		s.Handle = "@" + row.Handle
	}
	for _, listed := range a.Keys {
		key, err := e.actors.Key(a, listed.ID)
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
