// Package relay manages the list of relays, which are servers that forward public posts to their
// subscribers (FEP-ae0c), and makes the activities that the instance actor sends to them.
package relay

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// refreshEvery is the interval at which a serving process reads changes by other processes.
const refreshEvery = time.Second

// Store stores the relays.
type Store interface {
	All(ctx context.Context) ([]instance.Relay, error)
	Find(ctx context.Context, actor vocab.ID) (*instance.Relay, error)
	SetState(ctx context.Context, actor, follow vocab.ID, state string, now time.Time) (bool, error)
}

// Poster sends an activity to an inbox of another server.
type Poster interface {
	Post(ctx context.Context, p transport.Post) (transport.Attempt, error)
}

// Gate decides with which servers this server communicates. Check returns an error with the
// reason if a host may not be contacted. CheckActor returns such an error if activities of an
// actor are not accepted.
type Gate interface {
	Check(host string) error
	CheckActor(id vocab.ID) error
}

// Deps holds the dependencies of a List.
type Deps struct {
	Store  Store
	Actor  vocab.ID // the instance actor, who follows relays
	Keys   func() (transport.Keys, error)
	Poster Poster
	Gate   Gate
	Log    *slog.Logger
	Now    func() time.Time
}

// List is the list of this server's relays. While Run is running, it reads the list again every
// second. A List is safe for concurrent use.
type List struct {
	Deps

	mu       sync.RWMutex
	accepted map[vocab.ID]bool // the keys are the canonical ids of the accepted relays
	active   []instance.Relay  // the accepted relays; the slice is replaced, never changed
}

// NewList returns an empty list. Refresh or Run fills it.
func NewList(d Deps) *List { return &List{Deps: d} }

// Refresh reads the relays from the store.
func (l *List) Refresh(ctx context.Context) error {
	all, err := l.Store.All(ctx)
	if err != nil {
		return err
	}
	var active []instance.Relay
	accepted := map[vocab.ID]bool{}
	for _, r := range all {
		if r.State == instance.RelayAccepted {
			active = append(active, r)
			accepted[r.Actor.Canonical()] = true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active, l.accepted = active, accepted
	return nil
}

// Run reads the relays every second until ctx ends. When reading fails, the list stays as it
// was.
func (l *List) Run(ctx context.Context) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := l.Refresh(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			l.Log.WarnContext(ctx, "relays not read", "err", err)
		}
		failing = err != nil
	}
}

// Active returns the relays that have accepted this server. The caller must not change the
// slice.
func (l *List) Active() []instance.Relay {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.active
}

// IsAccepted reports whether actor is a relay that has accepted this server.
func (l *List) IsAccepted(actor vocab.ID) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.accepted[actor.Canonical()]
}

// RecordAnswer records the answer of a relay to a Follow by the instance actor. It reports
// whether the parameter follow is the last Follow that was sent to the relay. If it is not,
// nothing is recorded.
func (l *List) RecordAnswer(ctx context.Context, actor, follow vocab.ID, state string) (bool, error) {
	known, err := l.Store.SetState(ctx, actor.Canonical(), follow.Canonical(), state, l.Now())
	if err != nil || !known {
		return false, err
	}
	l.Log.InfoContext(ctx, "relay answered", "actor", actor, "state", state)
	return true, l.Refresh(ctx)
}

// AcceptFollowBack accepts a Follow by a LitePub relay that this server subscribed to, because
// such relays follow their subscribers. It reports whether the parameter by is such a relay. It
// returns once the Accept is sent. If sending fails, the fault is Unavailable, so that the relay
// sends its Follow again.
func (l *List) AcceptFollowBack(ctx context.Context, by *vocab.Actor, follow vocab.ID) (bool, error) {
	r, err := l.Store.Find(ctx, by.ID.Canonical())
	if err != nil || r == nil || r.Style != instance.RelayLitePub || r.State == instance.RelayRejected {
		return false, err
	}
	object := vocab.Doc{"id": string(follow), "type": vocab.Follow, "actor": string(by.ID), "object": string(l.Actor)}
	if err := l.Send(ctx, *r, l.newActivity("accepts", vocab.Accept, object, r.Actor)); err != nil {
		return true, fault.Wrap(fault.Unavailable, "the relay does not take the answer", err)
	}
	return true, nil
}

// NewFollowID returns an id for a Follow by which this server follows a relay.
func (l *List) NewFollowID() vocab.ID { return l.newID("follows") }

// newID returns an id for an activity of the instance actor. The activity is not stored. Its id
// is the instance actor's id with a fragment, so a request for it gets the instance actor's
// document.
func (l *List) newID(kind string) vocab.ID {
	return l.Actor + "#" + vocab.ID(kind) + "/" + vocab.ID(uuid.Must(uuid.NewV7()).String())
}

// IsAnswer reports whether an activity answers a Follow by the instance actor. It does not check
// that the answer comes from the relay that was followed; RecordAnswer does.
func (l *List) IsAnswer(a *vocab.Activity) bool {
	return (a.Type == vocab.Accept || a.Type == vocab.Reject) && a.Object.ID != l.Actor && a.Object.ID.Document().Same(l.Actor)
}

// FollowActivity returns the activity by which this server subscribes to a relay.
func (l *List) FollowActivity(r instance.Relay) vocab.Doc {
	d := l.followObject(r)
	d["@context"], d["to"] = vocab.ContextAS, []any{string(r.Actor)}
	return d
}

func (l *List) followObject(r instance.Relay) vocab.Doc {
	object := r.Actor
	if r.Style == instance.RelayMastodon {
		object = vocab.Public
	}
	return vocab.Doc{"id": string(r.Follow), "type": vocab.Follow, "actor": string(l.Actor), "object": string(object)}
}

// UndoActivity returns the activity by which this server undoes its Follow of a relay.
func (l *List) UndoActivity(r instance.Relay) vocab.Doc {
	return l.newActivity("undos", vocab.Undo, l.followObject(r), r.Actor)
}

// AnnounceActivity returns the activity that announces a public object to a LitePub relay, and
// the id of that activity. The activity addresses everybody, because some relays forward nothing
// else.
func (l *List) AnnounceActivity(object vocab.ID) (vocab.ID, vocab.Doc) {
	d := l.newActivity("announces", vocab.Announce, string(object), vocab.Public)
	return vocab.ID(d["id"].(string)), d
}

func (l *List) newActivity(kind, of string, object any, to vocab.ID) vocab.Doc {
	return vocab.Doc{"@context": vocab.ContextAS, "id": string(l.newID(kind)), "type": of, "actor": string(l.Actor), "object": object,
		"to": []any{string(to)}, "published": vocab.FormatTime(l.Now())}
}

// Send posts an activity to a relay, signed by the instance actor. The fault says how the relay
// refused it, or why it was not sent.
func (l *List) Send(ctx context.Context, r instance.Relay, d vocab.Doc) error {
	host := r.Inbox.Host()
	for _, err := range []error{l.Gate.Check(host), l.Gate.CheckActor(r.Actor)} {
		if err != nil {
			return err
		}
	}
	keys, err := l.Keys()
	if err != nil {
		return err
	}
	a, err := l.Poster.Post(ctx, transport.Post{Inbox: r.Inbox, Body: d.JSON(), As: keys})
	if err != nil {
		return err
	}
	return checkStatus(host, a.Status)
}

// checkStatus returns the fault for a status other than 2xx.
func checkStatus(host string, status int) error {
	kind := fault.Protocol
	switch {
	case status/100 == 2:
		return nil
	case status == http.StatusNotFound, status == http.StatusGone:
		kind = fault.NotFound
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		kind = fault.Forbidden
	case status == http.StatusTooManyRequests:
		kind = fault.RateLimited
	case status/100 == 5, status == http.StatusRequestTimeout:
		kind = fault.Unavailable
	}
	return fault.New(kind, fmt.Sprintf("%s answered %d %s", host, status, http.StatusText(status)))
}
