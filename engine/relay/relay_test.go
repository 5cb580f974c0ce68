package relay_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/relay"
	"github.com/lightweb/lightweb/engine/vocab"
)

// store is what another process writes into.
type store struct {
	mu     sync.Mutex
	relays []db.Relay
	err    error
	read   int
}

func (s *store) Relays(context.Context) ([]db.Relay, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read++
	return s.relays, s.err
}

// hold has it hold these from now on, or fail.
func (s *store) hold(relays []db.Relay, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relays, s.err = relays, err
}

func (s *store) Relay(context.Context, vocab.ID) (*db.Relay, error) { return nil, s.err }

func (s *store) SetRelayState(context.Context, vocab.ID, vocab.ID, string, time.Time) (bool, error) {
	return false, s.err
}

// What another process changes is seen within two seconds, for one query a second; while nothing
// can be read, what was known holds.
func TestTheListFollowsWhatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := relay.NewList(relay.Deps{Store: s, Log: slog.New(slog.DiscardHandler), Now: time.Now})
		ctx, stop := context.WithCancel(t.Context())
		go l.Run(ctx)
		accepted := db.Relay{Actor: "https://Relay.example/actor", State: db.Accepted}
		for _, tt := range []struct {
			name   string
			relays []db.Relay
			err    error
			want   bool
		}{
			{"none", nil, nil, false},
			{"pending", []db.Relay{{Actor: accepted.Actor, State: db.Pending}}, nil, false},
			{"accepted", []db.Relay{accepted}, nil, true},
			{"unreadable", nil, errors.New("away"), true},
			{"rejected", []db.Relay{{Actor: accepted.Actor, State: db.Rejected}}, nil, false},
			{"accepted again", []db.Relay{accepted}, nil, true},
			{"removed", nil, nil, false},
		} {
			synctest.Wait()
			s.hold(tt.relays, tt.err)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if got, active := l.IsAccepted("https://relay.example/actor"), len(l.Active()); got != tt.want || active == 1 != tt.want {
				t.Errorf("%s: accepted %v, active %d; want %v", tt.name, got, active, tt.want)
			}
		}
		stop()
		synctest.Wait()
		if s.read > 15 {
			t.Errorf("read %d times in 14 seconds", s.read)
		}
	})
}
