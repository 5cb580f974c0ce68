// Package delivery sends activities to inboxes: it chooses the destinations, and its dispatcher
// claims due deliveries in the users' databases, attempts them, and retries those that failed.
package delivery

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Serving begins the name of a process that serves, in the leases it takes. One process serves at
// a time: it takes over all leases under other such names.
const Serving = "serve:"

// Store writes users' databases.
type Store interface {
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *db.Tx) error) error
}

// Users are the users of the instance.
type Users interface {
	All(ctx context.Context) ([]instance.User, error)
}

// Hosts stores how deliveries to hosts go.
type Hosts interface {
	List(ctx context.Context, troubled bool) ([]instance.Host, error)
	ListChanged(ctx context.Context, since time.Time) ([]instance.Host, error)
	Save(ctx context.Context, all []instance.Host, seen time.Time) error
}

// Due stores which users have deliveries that are due, and which have parked ones.
type Due interface {
	ListDue(ctx context.Context, by time.Time) ([]instance.Due, error)
	MarkDue(ctx context.Context, all []instance.Due) ([]instance.Due, error)
	ListParked(ctx context.Context) ([]instance.Parked, error)
	MarkParked(ctx context.Context, all []instance.Parked, resumed bool) error
}

// Poster sends an activity to an inbox of another server.
type Poster interface {
	Post(ctx context.Context, p transport.Post) (transport.Attempt, error)
}

// Keys loads the keys that a user, or the instance actor, signs with.
type Keys interface {
	Keys(u vocab.Username) (transport.Keys, error)
	Instance() (transport.Keys, error)
}

// Actors looks actors up.
type Actors interface {
	// Known asks no other server; nil when the actor is unknown.
	Known(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	// Fresh asks the actor's own server; the fault is Gone when the actor is deleted there.
	Fresh(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
}

// Local hands a user of this server the activities that another one sends or forwards.
type Local interface {
	Deliver(ctx context.Context, from, to vocab.Username, body []byte) error
}

// Gate says whether a host may be contacted, and an actor be delivered to: nil, or why not.
type Gate interface {
	Check(host string) error
	CheckActor(id vocab.ID) error
}

// Deps are the parts and settings that a dispatcher works with.
type Deps struct {
	Store  Store
	Users  Users
	Hosts  Hosts
	Due    Due
	Poster Poster
	Keys   Keys
	Actors Actors
	Gate   Gate

	Local      Local
	InboxOwner func(inbox vocab.ID) (vocab.Username, bool) // the owner of a local inbox

	// Synchronization returns the header field for u's followers on a server, given their digest;
	// nil: it is left out.
	Synchronization func(u vocab.Username, digest vocab.FollowersDigest) vocab.Synchronization

	Lasting         []string      // types that take something back: their deliveries are tried for 30 days
	Owner           string        // names this process in leases, after Serving: no other, before or beside it, has the same
	Paused          bool          // deliveries to other servers wait in the database
	Concurrency     int           // attempts at once; 128 when 0
	HostConcurrency int           // of them to one host; 4 when 0. Half as many may be retries
	Drain           time.Duration // how long attempts under way may still take at the end

	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}
