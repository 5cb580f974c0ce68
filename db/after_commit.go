package db

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
	User    vocab.Username
	Unknown bool // the connection was lost during the commit: anything may have been committed, or nothing
	Touched
	Events []Event // that were added, with their numbers and in their order

	Owes        bool       // deliveries were added
	Leased      []Delivery // of them, those that the transaction leased for the dispatcher
	LeasedUntil time.Time

	Behind []Behind // conversations of which messages may be missing
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

// Touched is what a reader may see otherwise than before a transaction. It may name too much,
// never too little.
type Touched struct {
	Everything bool       // the other fields do not tell the whole
	Pages      Pages      // of which a page may differ
	Objects    []vocab.ID // activities and objects that were stored, changed or removed
	Actors     []vocab.ID // whose copy or relationship with the user changed
}

// IsZero reports whether readers see nothing otherwise.
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

// touchRows touches the activities whose uris a statement returns.
func (t *Tx) touchRows(rows pgx.Rows) error {
	uris, err := pgx.CollectRows(rows, pgx.RowTo[vocab.ID])
	t.touched.touch(0, uris...)
	return err
}

// Subscriber is told of commits.
type Subscriber struct {
	Name string // in the log
	// Committed is called after the commit, outside the transaction, and before the writer hears
	// that it succeeded. Commits of one user may reach it at the same time and in another order
	// than the database made them: the numbers of their events say that order. Its context ends
	// with the time it has; the writer does not wait for longer.
	Committed func(ctx context.Context, c Commit)
}

// subscriberTime is how long a writer waits for one subscriber.
const subscriberTime = 500 * time.Millisecond

// subscribers are those who are told of commits, in this order.
type subscribers struct {
	list atomic.Pointer[[]Subscriber]
	log  *slog.Logger
}

// Subscribe makes these the subscribers of every commit in a user's database, in this order.
// Nothing else learns of a commit. It is called once, before the process writes.
func (c *Cluster) Subscribe(all ...Subscriber) { c.subscribers.list.Store(&all) }

// tell calls every subscriber once. The write is done: neither the end of its context nor a
// subscriber takes it back.
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

// tellOne waits until one subscriber has heard of a commit, or its time is over.
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

// logPanic keeps a panic of a subscriber from ending the process.
func (s *subscribers) logPanic(ctx context.Context, one Subscriber, c Commit) {
	if p := recover(); p != nil {
		s.log.ErrorContext(ctx, "subscriber panicked", "subscriber", one.Name, "user", c.User, "err", p, "stack", string(debug.Stack()))
	}
}

// outcome is how a transaction ended.
type outcome uint8

const (
	rolledBack outcome = iota
	committed
	unknown // the connection was lost before the answer to the commit
)

// outcomeOf tells from the error of the commit how the transaction ended.
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

// commitOf returns what subscribers are told of a transaction, nil when it was rolled back.
func (t *Tx) commitOf(u vocab.Username) *Commit {
	switch t.outcome {
	case committed:
		return &Commit{User: u, Touched: t.touched, Events: t.numbered, Owes: t.owes, Leased: t.leased, LeasedUntil: t.leasedUntil, Behind: t.behind}
	case unknown:
		return &Commit{User: u, Unknown: true, Touched: Touched{Everything: true}, Owes: true}
	}
	return nil
}
