package event

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	// databaseTime is how long the emitter waits for one transaction. A database that does not
	// answer must not keep the events of other users.
	databaseTime = 10 * time.Second

	// repairTime is how long the emitter waits for a statement that may change all waiting events
	// of a user. Such a statement would be tried again for ever if it never ended in time.
	repairTime = 5 * time.Minute

	// hungWait is how long the groups of a user whose database did not answer in time are left
	// alone.
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

// repair is Write for a statement that may take long. One repair at a time may take repairTime, so
// that databases that do not answer leave workers to the others.
func (e *Emitter) repair(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	select {
	case e.repairs <- struct{}{}:
		defer func() { <-e.repairs }()
		return e.repairing.Write(ctx, u, work)
	default:
		return e.Store.Write(ctx, u, work)
	}
}

// patientUsers are Users whose answers are awaited only for a while.
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
