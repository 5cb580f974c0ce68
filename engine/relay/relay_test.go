package relay_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/relay"
	"github.com/lightweb/lightweb/engine/vocab"
)

// store is a store of relays. The test changes it, as another process would.
type store struct {
	mu     sync.Mutex
	relays []instance.Relay
	err    error
	read   int
}

func (s *store) All(context.Context) ([]instance.Relay, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read++
	return s.relays, s.err
}

// hold sets the relays or the error that the store returns from now on.
func (s *store) hold(relays []instance.Relay, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relays, s.err = relays, err
}

func (s *store) Find(context.Context, vocab.ID) (*instance.Relay, error) { return nil, s.err }

func (s *store) SetState(context.Context, vocab.ID, vocab.ID, string, time.Time) (bool, error) {
	return false, s.err
}

// The list notices a change by another process within two seconds. It reads the store once a
// second. While the store cannot be read, the list does not change.
func TestTheListFollowsWhatIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		l := relay.NewList(relay.Deps{Store: s, Log: slog.New(slog.DiscardHandler), Now: time.Now})
		ctx, stop := context.WithCancel(t.Context())
		go l.Run(ctx)
		accepted := instance.Relay{Actor: "https://Relay.example/actor", State: instance.RelayAccepted}
		for _, tt := range []struct {
			name   string
			relays []instance.Relay
			err    error
			want   bool
		}{
			{"none", nil, nil, false},
			{"pending", []instance.Relay{{Actor: accepted.Actor, State: instance.RelayPending}}, nil, false},
			{"accepted", []instance.Relay{accepted}, nil, true},
			{"unreadable", nil, errors.New("away"), true},
			{"rejected", []instance.Relay{{Actor: accepted.Actor, State: instance.RelayRejected}}, nil, false},
			{"accepted again", []instance.Relay{accepted}, nil, true},
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
