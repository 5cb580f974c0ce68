package user_test

import (
	"context"
	"github.com/lightweb/lightweb/db/user"
	"testing"
)

// BenchmarkBuryAnActor removes the 10,000 notes of an actor. The engine does this for each
// follower of an actor that sends a Delete of itself.
func BenchmarkBuryAnActor(b *testing.B) {
	const notes = 10_000
	c, u := alice(b)
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		write(b, c, u, func(ctx context.Context, tx *user.Tx) error {
			for i := range notes {
				if err := addNote(ctx, tx, bob, n*notes+i, now); err != nil {
					return err
				}
			}
			return nil
		})
		b.StartTimer()
		write(b, c, u, func(ctx context.Context, tx *user.Tx) error {
			if _, err := tx.Actors.Forget(ctx, bob); err != nil {
				return err
			}
			ids, err := tx.Objects.ListBy(ctx, bob)
			if err != nil {
				return err
			}
			graves := make([]user.Grave, len(ids))
			for i, id := range ids {
				graves[i] = user.Grave{URI: id, Author: bob, Tombstone: []byte(headline)}
			}
			if stored, err := tx.Objects.BuryAll(ctx, graves, now); err != nil || stored != notes {
				b.Errorf("Objects.BuryAll = %d, %v; want %d", stored, err, notes)
			}
			return nil
		})
	}
}
