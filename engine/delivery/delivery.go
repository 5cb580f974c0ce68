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

// Serving is the prefix of the name under which a serving process takes leases. One process
// serves at a time: it takes over all leases under other names with this prefix.
const Serving = "serve:"

// Store writes users' databases.
type Store interface {
	Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error
}

// Users are the users of the instance.
type Users interface {
	All(ctx context.Context) ([]instance.User, error)
}

// Hosts stores the delivery state of each host.
type Hosts interface {
	List(ctx context.Context, troubled bool) ([]instance.Host, error)
	ListChanged(ctx context.Context, since time.Time) ([]instance.Host, error)
	Save(ctx context.Context, all []instance.Host, seen time.Time) error
}

// Due stores which users have deliveries that are due, and which have parked deliveries.
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
	// Known makes no request; it returns nil when the actor is not stored.
	Known(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
	// Fresh fetches the actor from its own server; the fault is Gone when the actor was deleted
	// there.
	Fresh(ctx context.Context, id vocab.ID) (*vocab.Actor, error)
}

// Local delivers to a user of this server the activities that another local user sends or
// forwards.
type Local interface {
	Deliver(ctx context.Context, from, to vocab.Username, body []byte) error
}

// Gate returns an error that gives the reason when a host may not be contacted, or an actor may
// not be delivered to; else nil.
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
	Owner           string        // Serving and the name of this process, for its leases; no other process, past or present, has the same
	Paused          bool          // true: deliveries to other servers wait in the database
	Concurrency     int           // attempts at the same time; 0 means 128
	HostConcurrency int           // attempts to one host at the same time; 0 means 4. At most half may be retries
	Drain           time.Duration // the time that attempts in progress get when Run ends

	Now     func() time.Time
	Log     *slog.Logger
	Metrics prometheus.Registerer
}
