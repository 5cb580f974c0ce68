package conversation_test

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/vocab"
)

// reads is a store that counts its Read transactions.
type reads struct {
	conversation.Store
	n atomic.Int64
}

func (r *reads) Read(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error {
	r.n.Add(1)
	return r.Store.Read(ctx, u, work)
}

// The stock reads only some users' databases: those with packages or Welcomes, and those written
// since the last count. If the stock cannot list the users, it shows no values.
func TestTheStockIsWhatWaitsInTheDatabasesThatCanBeRead(t *testing.T) {
	t.Parallel()
	s, store, reg := newScene(t), &reads{}, prometheus.NewRegistry()
	store.Store = s.store
	bob, carol := dbtest.User(t, s.store, "bob"), dbtest.User(t, s.store, "carol")
	stock := conversation.NewStock(conversation.StockDeps{Store: store, Owners: s.store.Instance.Users, ID: actors{}.ID, Log: slog.New(slog.DiscardHandler), Metrics: reg, Now: s.now})
	s.store.Subscribe(user.Subscriber{Name: "stock", Committed: stock.Committed})
	want := func(reads int64, values ...float64) {
		t.Helper()
		store.n.Store(0)
		stock.LookAround(t.Context())
		if n := store.n.Load(); n != reads {
			t.Errorf("%d databases are read, want %d", n, reads)
		}
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var got []float64
		for _, f := range families {
			got = append(got, f.GetMetric()[0].GetGauge().GetValue())
		}
		if !slices.Equal(got, values) {
			t.Errorf("the gauges show %v, want %v", got, values)
		}
	}
	if n := testutil.CollectAndCount(stock); n != 0 {
		t.Errorf("before any count there are %d values", n)
	}
	want(3, 0, 0)
	want(0, 0, 0)
	for n, u := range []vocab.Username{bob, bob, carol} {
		s.write(u, func(ctx context.Context, tx *user.Tx) error {
			_, err := tx.KeyPackages.Add(ctx, user.KeyPackage{ID: uuid.New(), Ref: []byte{byte(n)}, Device: "phone", Suite: 1, Content: []byte("p"), NotAfter: s.now().Add(30 * 24 * time.Hour), CreatedAt: s.now()})
			return err
		})
	}
	for n, to := range []vocab.ID{actors{}.ID(bob), bobID} { // the second Welcome is for an actor on another server
		s.write(bob, func(ctx context.Context, tx *user.Tx) error {
			return tx.Welcomes.Add(ctx, user.Welcome{ID: uuid.New(), Recipient: to, KeyPackage: []byte{byte(n)}, Content: []byte("w"), CreatedAt: s.now()})
		})
	}
	want(2, 3, 1)
	s.later(30 * 24 * time.Hour) // long enough for the packages to expire
	want(2, 0, 1)
	if err := s.store.DropUserDatabase(t.Context(), carol); err != nil {
		t.Fatal(err)
	}
	s.write(bob, func(ctx context.Context, tx *user.Tx) error { return tx.KeyPackages.NoteLow(ctx, false) })
	want(1, 0, 1)

	away, end := context.WithCancel(t.Context())
	end()
	stock.LookAround(away)
	if n := testutil.CollectAndCount(stock); n != 0 {
		t.Errorf("while the users cannot be listed there are %d values", n)
	}
}
