// Package delivery sends activities to inboxes: it chooses the destinations, and its dispatcher
// claims due deliveries in the users' databases, attempts them, and retries those that failed.
package delivery

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Serving is the prefix of the name under which a serving process takes leases on deliveries. Only
// one process serves at a time, so it takes over all leases under other names with this prefix.
const Serving = "serve:"

// Store writes users' databases.
type Store interface {
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
}

// Users are the users of the instance.
type Users interface {
	All(ctx context.Context) ([]instance.User, error)
	IsRemoved(ctx context.Context, u vocab.Username) bool
}

// Hosts stores the delivery state of each host.
type Hosts interface {
	List(ctx context.Context, troubled bool) ([]instance.Host, error)
	ListChanged(ctx context.Context, since time.Time) ([]instance.Host, error)
	Save(ctx context.Context, all []instance.Host, seen time.Time) error
}

// Due stores which users have deliveries that are due, and which users have parked deliveries,
// that is, deliveries that wait for an inactive host.
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

// Keys loads the keys with which a user, or the instance actor, signs.
type Keys interface {
	Keys(u vocab.Username) (transport.Keys, error)
	Instance() (transport.Keys, error)
}

// Actors looks actors up.
type Actors interface {
	// Known returns a stored actor, or nil if the actor is not stored. It makes no request.
	Known(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	// Fresh fetches the actor from its own server; the fault is Gone when the actor was deleted
	// there.
	Fresh(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
}

// Local delivers activities between users of this server, without a request. The sender, from,
// made the activity or forwards it.
type Local interface {
	Deliver(ctx context.Context, from, to vocab.Username, body []byte) error
}

// Gate decides which hosts may be contacted, and which actors may get deliveries. Its methods
// return nil, or an error with the reason for a refusal.
type Gate interface {
	Check(host string) error
	CheckActor(id vocab.ID) error
}

// Deps holds the dependencies and settings of a dispatcher.
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

	// Synchronization returns the header field about u's followers on a server, given their
	// digest. When Synchronization is nil, the field is left out.
	Synchronization func(u vocab.Username, digest vocab.FollowersDigest) vocab.Synchronization

	Lasting         []string      // activity types that take something back; their deliveries are tried for 30 days
	Owner           string        // the name in this process's leases, which no other process ever has; it begins with Serving in a serving process
	Paused          bool          // whether deliveries to other servers wait in the database
	Concurrency     int           // attempts at inboxes of other servers at once; 0 means 128
	HostConcurrency int           // attempts to one host at the same time; 0 means 4. At most half may be retries
	Drain           time.Duration // how long turns and attempts may go on when Run ends

	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}
