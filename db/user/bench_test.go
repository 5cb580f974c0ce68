package user_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The shared test server does not wait for the disk. To measure with a disk, name another server
// in LIGHTWEB_TEST_POSTGRES.

func BenchmarkWriteOneActivity(b *testing.B)        { benchmarkWrite(b, 1) }
func BenchmarkWriteAHundredActivities(b *testing.B) { benchmarkWrite(b, 100) }

// benchmarkWrite stores new notes as the inbound pipeline does. The parameter batch is the number
// of notes in a transaction.
func benchmarkWrite(b *testing.B, batch int) {
	c, u := alice(b)
	n := 0
	for b.Loop() {
		first := n
		n += batch
		write(b, c, u, func(ctx context.Context, tx *user.Tx) error {
			ids, objects := make([]vocab.ID, batch), make([]vocab.ID, batch)
			for i := range batch {
				a, o, _ := note(bob, first+i, now)
				ids[i], objects[i] = a.URI, o.URI
			}
			if _, err := tx.Activities.ClaimAhead(ctx, by(bob, ids...), []vocab.ID{bob}, by(bob, objects...)); err != nil {
				return err
			}
			for i := range batch {
				if err := addNote(ctx, tx, bob, first+i, now); err != nil {
					return err
				}
				if err := tx.Events.Add(ctx, event(first+i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "activities/s")
}

// BenchmarkClaimFromABacklog claims deliveries to a host that did not answer for a long time. All
// of these deliveries are due at once.
func BenchmarkClaimFromABacklog(b *testing.B) {
	const owed, batch = 10_000, 200
	c, u := alice(b)
	write(b, c, u, func(ctx context.Context, tx *user.Tx) error {
		for n := range owed {
			j := job("Create", vocab.ID(fmt.Sprint("https://here.example/objects/", n)))
			if err := tx.Deliveries.Enqueue(ctx, j, []user.Inbox{inboxOn("away.example", 1)}, now); err != nil {
				return err
			}
		}
		return nil
	})
	n := 0
	for b.Loop() {
		n += len(claim(b, c, u, "me", now, batch))
		write(b, c, u, func(ctx context.Context, tx *user.Tx) error { return tx.Deliveries.Release(ctx, "me", now) })
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "deliveries/s")
}
