package event

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// databaseTime limits the wait for one transaction, so that a database that does not
	// answer does not hold up the events of other users.
	databaseTime = 10 * time.Second

	// repairTime limits the wait for a transaction that may change thousands of a user's
	// events, or read them all. If the limit were too short, it would be tried again for ever.
	repairTime = 5 * time.Minute

	// hungWait is the time for which the checks of groups skip a user whose database did not
	// answer in time.
	hungWait = time.Minute
)

// patientStore is a Store whose transactions end after a while.
type patientStore struct {
	Store
	limit time.Duration
}

func (s patientStore) Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	return s.Store.Read(ctx, u, work)
}

func (s patientStore) Write(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	return s.Store.Write(ctx, u, work)
}

// repairAll runs work in one transaction after another until no more is left to do. Each
// transaction changes few of the events, so that commits with events do not wait long for it.
func (e *Emitter) repairAll(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) (more bool, err error)) error {
	for more := true; more; {
		err := e.repair(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
			more, err = work(ctx, tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// repair does what Write does, for a transaction that may take long. Only one repair at a time may
// take repairTime, so that databases that do not answer cannot occupy all workers.
func (e *Emitter) repair(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	select {
	case e.repairs <- struct{}{}:
		defer func() { <-e.repairs }()
		return e.repairing.Write(ctx, u, work)
	default:
		return e.Store.Write(ctx, u, work)
	}
}

// patientUsers are Users whose calls end after a while.
type patientUsers struct {
	Users
	limit time.Duration
}

func (p patientUsers) All(ctx context.Context) ([]instance.User, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	return p.Users.All(ctx)
}

func (p patientUsers) IsRemoved(ctx context.Context, u vocab.Username) bool {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	return p.Users.IsRemoved(ctx, u)
}

func (p patientUsers) ListEventsDue(ctx context.Context) ([]instance.EventsDue, error) {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	return p.Users.ListEventsDue(ctx)
}

func (p patientUsers) ClearEventsDue(ctx context.Context, all []instance.EventsDue) error {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	return p.Users.ClearEventsDue(ctx, all)
}
