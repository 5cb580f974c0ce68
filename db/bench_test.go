package db_test

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The shared test server does not wait for the disk; LIGHTWEB_TEST_POSTGRES names one that does.

func BenchmarkWriteOneActivity(b *testing.B)        { benchmarkWrite(b, 1) }
func BenchmarkWriteAHundredActivities(b *testing.B) { benchmarkWrite(b, 100) }

// benchmarkWrite stores new notes, a batch in a transaction, as the inbound pipeline does.
func benchmarkWrite(b *testing.B, batch int) {
	c, u := alice(b)
	n := 0
	for b.Loop() {
		first := n
		n += batch
		write(b, c, u, func(ctx context.Context, tx *db.Tx) error {
			ids := make([]vocab.ID, batch)
			for i := range batch {
				a, _, _ := note(bob, first+i, now)
				ids[i] = a.URI
			}
			if _, err := tx.Claim(ctx, ids); err != nil {
				return err
			}
			for i := range batch {
				if err := addNote(ctx, tx, bob, first+i, now); err != nil {
					return err
				}
				if err := tx.AddEvent(ctx, event(first+i)); err != nil {
					return err
				}
			}
			return tx.TrimEvents(ctx)
		})
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "activities/s")
}
