package conversation_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// BenchmarkWarmUp makes 1,000 conversations of 1 or of 50 databases known, by the first connection
// to each and by one that is open already, or 1,000 of the 100,000 of one database.
func BenchmarkWarmUp(b *testing.B) {
	for _, of := range []struct {
		users, each int
		opens       bool
	}{{1, 1000, false}, {50, 20, false}, {50, 20, true}, {1, 100_000, false}} {
		b.Run(fmt.Sprintf("%d_databases_of_%d_opening_%t", of.users, of.each, of.opens), func(b *testing.B) {
			_, config := dbtest.Named(b)
			config.MaxConnections = 64
			store := dbtest.Connect(b, config)
			s := &scene{TB: b, store: store}
			for n := range of.users {
				s.hostMany(dbtest.User(b, store, fmt.Sprintf("user%d", n)), time.Now().AddDate(-1, 0, 0), of.each)
			}
			bytes, known := 0.0, 0
			for b.Loop() {
				b.StopTimer()
				if of.opens {
					store = dbtest.Connect(b, config)
				}
				w := warmerOf(store)
				before, _ := measureHeap()
				b.StartTimer()
				w.WarmUp(b.Context())
				b.StopTimer()
				after, _ := measureHeap()
				bytes, known = after-before, w.Registry.CountLive()
				if of.opens {
					store.Close()
				}
				b.StartTimer()
			}
			if !of.opens { // otherwise the closed connections are in the figure, too
				b.ReportMetric(bytes/float64(known), "B/conversation")
			}
			b.ReportMetric(float64(known), "known")
		})
	}
}

// BenchmarkCommitWhileWarmingUp is BenchmarkCommit while an engine on the same machine warms up
// again and again, from 50 databases that it has to open.
func BenchmarkCommitWhileWarmingUp(b *testing.B) {
	s := newScene(b)
	store, config := dbtest.Named(b)
	for n := range 50 {
		(&scene{TB: b, store: store}).hostMany(dbtest.User(b, store, fmt.Sprintf("user%d", n)), time.Now(), 20)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			other := dbtest.Connect(b, config)
			warmerOf(other).WarmUp(ctx)
			other.Close()
		}
		ended <- n
	}()
	for b.Loop() {
		s.commit(s.alice, mlstest.Change{})
	}
	b.StopTimer()
	stop()
	b.ReportMetric(float64(<-ended), "warm-ups")
}

// warmerOf returns the warm-up of a registry that knows nothing.
func warmerOf(store *db.Cluster) conversation.Warmer {
	log := slog.New(slog.DiscardHandler)
	r := conversation.NewRegistry(conversation.Deps{Store: store, Actors: actors{}, Log: log, Now: time.Now})
	return conversation.Warmer{Registry: r, Store: store.As(pool.Stranger), Users: store.Instance.Users, Log: log}
}
