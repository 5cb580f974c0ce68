package user

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Commit says what one transaction changed in a user's database.
type Commit struct {
	User vocab.Username
	// Unknown says that the connection was lost during the commit, so all changes may have been
	// committed, or none. Subscribers are told once at the loss, and again when the server
	// has ended the transaction, because it may commit in between.
	Unknown bool
	backend uint32 // the process of the server that may still commit, if Unknown is true
	Touched
	Events []Event // the added events with their numbers, lowest first

	Owes        bool       // deliveries may have been added
	Leased      []Delivery // the added deliveries that the transaction leased for the dispatcher
	LeasedUntil time.Time

	Behind []Behind // conversations that may lack messages
}

// Pages is a set of the user's feeds and collections that are read page by page.
type Pages uint8

// The feeds and collections.
const (
	MainFeed Pages = 1 << iota
	NotificationsFeed
	RequestsFeed
	OutboxPages
	FollowersPages
	FollowingPages
	FeaturedPages

	feeds = MainFeed | NotificationsFeed | RequestsFeed
)

// Has reports whether all pages of other are in p.
func (p Pages) Has(other Pages) bool { return p&other == other }

// Touched lists the pages, activities, objects and actors that a reader may see differently after
// a transaction. It may list too many, never too few.
type Touched struct {
	Everything bool       // anything may differ, and the other fields are incomplete
	Pages      Pages      // feeds and collections with a page that may differ
	Objects    []vocab.ID // activities and objects that were stored, changed or removed
	Actors     []vocab.ID // actors whose copy or relationship with the user changed
}

// IsZero reports whether the transaction changed nothing that readers see.
func (t Touched) IsZero() bool {
	return !t.Everything && t.Pages == 0 && len(t.Objects) == 0 && len(t.Actors) == 0
}

// touch adds feeds and collections, and the activities and objects that changed.
func (t *Touched) touch(p Pages, objects ...vocab.ID) {
	t.Pages |= p
	t.Objects = append(t.Objects, objects...)
}

// touchActor adds an actor whose copy or relationship changed.
func (t *Touched) touchActor(p Pages, actor vocab.ID) {
	t.Pages |= p
	t.Actors = append(t.Actors, actor)
}

// touchRows adds the activities whose uris a statement returns.
func (t *tx) touchRows(rows pgx.Rows) error {
	uris, err := pgx.CollectRows(rows, pgx.RowTo[vocab.ID])
	t.touched.touch(0, uris...)
	return err
}

// Subscriber is notified of commits.
type Subscriber struct {
	Name string // shown in the log
	// Committed is called after the commit, outside the transaction, and before Write returns
	// to the writer. Several calls for one user may run at the same time, and in another
	// order than that of the commits. The numbers of the events tell the order of commits
	// that have events. The context ends after subscriberTime, and the writer waits no longer
	// than that.
	Committed func(ctx context.Context, c Commit)
}

// subscriberTime limits how long a writer waits for one subscriber.
const subscriberTime = 500 * time.Millisecond

// subscribers are notified of commits in the order of the list.
type subscribers struct {
	list atomic.Pointer[[]Subscriber]
	log  *slog.Logger
}

// Subscribe sets the subscribers that are notified of every commit of Write, in this order. It
// replaces the subscribers of an earlier call, so it is called once, before the process writes.
func (d *Databases) Subscribe(all ...Subscriber) { d.subscribers.list.Store(&all) }

// tell calls every subscriber once, even if the context of the writer is cancelled, because the
// commit has happened and no subscriber can undo it.
func (s *subscribers) tell(ctx context.Context, c Commit) {
	all := s.list.Load()
	if all == nil {
		return
	}
	ctx = context.WithoutCancel(ctx)
	for _, one := range *all {
		s.tellOne(ctx, one, c)
	}
}

// tellOne waits until one subscriber has handled a commit or subscriberTime is over.
func (s *subscribers) tellOne(ctx context.Context, one Subscriber, c Commit) {
	ctx, cancel := context.WithTimeout(ctx, subscriberTime)
	defer cancel()
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		defer s.logPanic(ctx, one, c)
		one.Committed(ctx, c)
	}()
	select {
	case <-heard:
	case <-ctx.Done():
		s.log.WarnContext(ctx, "subscriber took too long", "subscriber", one.Name, "user", c.User)
	}
}

// logPanic logs a panic of a subscriber, so that the panic does not end the process.
func (s *subscribers) logPanic(ctx context.Context, one Subscriber, c Commit) {
	if p := recover(); p != nil {
		s.log.ErrorContext(ctx, "subscriber panicked", "subscriber", one.Name, "user", c.User, "err", p, "stack", string(debug.Stack()))
	}
}

// outcome says how a transaction ended.
type outcome uint8

const (
	rolledBack outcome = iota
	committed
	unknown // the connection was lost before the server had answered the commit
)

// outcomeOf returns the outcome of a transaction, given the error of its commit.
func outcomeOf(err error) outcome {
	var refusal *pgconn.PgError
	switch {
	case err == nil:
		return committed
	case errors.Is(err, pgx.ErrTxCommitRollback), pgconn.SafeToRetry(err), errors.As(err, &refusal) && refusal.SeverityUnlocalized == "ERROR":
		return rolledBack
	}
	return unknown
}

// commitOf returns the Commit that describes the transaction to subscribers, or nil if the
// transaction was rolled back.
func (t *tx) commitOf(u vocab.Username) *Commit {
	switch t.outcome {
	case committed:
		return &Commit{User: u, Touched: t.touched, Events: t.numbered, Owes: t.owes, Leased: t.leased, LeasedUntil: t.leasedUntil, Behind: t.behind}
	case unknown:
		return &Commit{User: u, Unknown: true, backend: t.conn.PgConn().PID(), Touched: Touched{Everything: true}, Owes: true}
	}
	return nil
}
