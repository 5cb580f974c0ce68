package server

import (
	"context"
	"net/http"
	"time"

	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// strangers reads users' databases for everybody except their owners.
type strangers struct {
	store *user.Databases
	reads *policy.Pool // limits the reads that have a connection or wait for one
}

func newStrangers(store *user.Databases, now func() time.Time) strangers {
	opens := policy.StrangersOpens.Shared(now)
	mayOpen := func(ctx context.Context) bool {
		ok, _ := opens.Allow("", policy.PayerOf(ctx), 0)
		return ok
	}
	return strangers{store.ForStrangers(pool.Strangers{PayerOf: policy.PayerOf, MayOpen: mayOpen}), policy.StrangersReads.NewPool()}
}

var errCrowded = fault.New(fault.Unavailable, "too many are asking: try again later").WithCode("crowded").After(time.Second)

// readerOf returns readAsStranger for one request.
func (s *access) readerOf(r *http.Request) func(context.Context, vocab.Username, func(context.Context, *user.Tx) error) error {
	return func(_ context.Context, u vocab.Username, read func(context.Context, *user.Tx) error) error {
		return s.readAsStranger(r, u, read)
	}
}

// readAsStranger reads a user's database for anybody except the user. The read is charged to the
// client's address. So a client that reads as fast as it can leaves room for other clients, and
// the clients take turns at the connections.
func (s *access) readAsStranger(r *http.Request, u vocab.Username, read func(context.Context, *user.Tx) error) error {
	ctx := policy.PaidByAddress(r.Context(), s.clientOf(r))
	payer := policy.PayerOf(ctx)
	if !s.strangers.reads.Take(payer, 1) {
		return errCrowded
	}
	defer s.strangers.reads.Give(payer, 1)
	return s.strangers.store.Read(ctx, u, read)
}
