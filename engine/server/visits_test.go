package server

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
)

func TestStrangersHoldOnlySomeConnections(t *testing.T) {
	t.Parallel()
	store := dbtest.New(t)
	alice := dbtest.User(t, store, "alice")
	s := &Server{Deps: Deps{Store: store, Now: time.Now}, visits: newVisits(2)}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.visit(t.Context(), alice, func(ctx context.Context, _ *db.Tx) error {
		return s.visit(ctx, alice, func(context.Context, *db.Tx) error {
			return s.visit(impatient, alice, func(context.Context, *db.Tx) error { return nil })
		})
	})
	if !errors.Is(err, errCrowded) {
		t.Errorf("a third stranger, with places for two: %v, want %v", err, errCrowded)
	}
	if err := s.visit(t.Context(), alice, func(context.Context, *db.Tx) error { return nil }); err != nil {
		t.Errorf("after the others have gone: %v", err)
	}
}
