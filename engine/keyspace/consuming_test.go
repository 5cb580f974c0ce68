package keyspace_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// openAs opens the keyspace as the Redis user that may read alice's events.
func openAs(t *testing.T, k *keyspace.Keyspace, address string) *keyspace.Store {
	t.Helper()
	access := k.Events.StreamAccess(user(t, "alice"), "events", "secret")
	if _, err := k.Events.GrantAccess(t.Context(), access); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(access.Name, "secret")
	return open(t, keyspace.Config{CacheURL: u.String()}).Events
}

// A program with access to one stream reads it as one of two members of a group.
func TestMembersOfAGroup(t *testing.T) {
	t.Parallel()
	for _, tt := range servers {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address := tt.url(t)
			k := open(t, keyspace.Config{CacheURL: address})
			owner := k.Events.Of(user(t, "alice"))
			space := openAs(t, k, address).Of(user(t, "alice"))
			one := keyspace.Member{Space: space, Stream: "events", Group: "llm", Name: "one"}
			two := keyspace.Member{Space: space, Stream: "events", Group: "llm", Name: "two"}
			if _, err := one.Next(t.Context(), 0); !errors.Is(err, keyspace.ErrNoGroup) {
				t.Errorf("without a group: %v", err)
			}
			if _, err := owner.Append(t.Context(), "events", keyspace.ID{}, 100, []keyspace.Entry{entry(1, 1, "a"), entry(1, 2, "b"), entry(1, 3, "c")}); err != nil {
				t.Fatal(err)
			}
			if err := owner.CreateGroup(t.Context(), "events", "llm", keyspace.ID{}); err != nil {
				t.Fatal(err)
			}
			first, second, third := keyspace.ID{Milli: 1, Seq: 1}, keyspace.ID{Milli: 1, Seq: 2}, keyspace.ID{Milli: 1, Seq: 3}
			wantDelivered(t, first, 1)(one.Next(t.Context(), 0))
			wantDelivered(t, second, 1)(one.Next(t.Context(), 0))
			wantDelivered(t, third, 1)(two.Next(t.Context(), 0))
			wantDelivered(t, keyspace.ID{}, 0)(two.Next(t.Context(), 0))
			wantDelivered(t, second, 2)(one.Resume(t.Context(), first))
			wantDelivered(t, keyspace.ID{}, 0)(one.Resume(t.Context(), second))

			if part, err := two.TakeOver(t.Context(), keyspace.ID{}, time.Hour); err != nil || part.Taken != nil || part.Next != (keyspace.ID{}) {
				t.Errorf("nothing is idle for an hour: %+v, %v", part, err)
			}
			part, err := two.TakeOver(t.Context(), keyspace.ID{}, 0)
			wantDelivered(t, first, 2)(part.Taken, err)
			part, err = two.TakeOver(t.Context(), part.Next, 0)
			wantDelivered(t, second, 3)(part.Taken, err)
			for _, err := range []error{two.Hold(t.Context(), second), one.Acknowledge(t.Context(), first)} {
				if err != nil {
					t.Error(err)
				}
			}
			wantDelivered(t, second, 4)(two.Resume(t.Context(), first)) // Hold does not count as a delivery

			if _, err := owner.Trim(t.Context(), "events", 0); err != nil {
				t.Fatal(err)
			}
			if d, err := two.Resume(t.Context(), second); err != nil || d == nil || d.ID != third || !d.Lost {
				t.Errorf("trimmed: %+v, %v", d, err)
			}
			if part, err := one.TakeOver(t.Context(), keyspace.ID{}, 0); err != nil || part.Taken != nil || len(part.Lost) != 1 || part.Lost[0] != second {
				t.Errorf("trimmed: %+v, %v; want %s lost, as the other was acknowledged", part, err, second)
			}
			if err := two.Bury(t.Context(), []string{"error", "why"}, 100); err != nil {
				t.Error(err)
			}
			if letters, err := space.Range(t.Context(), "events:dead", keyspace.ID{}, 10); err != nil || len(letters) != 1 || letters[0].Field("error") != "why" {
				t.Errorf("the dead letters are %v, %v", letters, err)
			}
		})
	}
}

// wantDelivered checks the result of a read. If id is the zero id, nothing must be delivered.
func wantDelivered(t *testing.T, id keyspace.ID, tries int) func(*keyspace.Delivered, error) {
	return func(d *keyspace.Delivered, err error) {
		t.Helper()
		switch {
		case err != nil:
			t.Errorf("read: %v, want %s", err, id)
		case d == nil && id != (keyspace.ID{}), d != nil && (d.ID != id || d.Tries != tries || d.Field("text") == ""):
			t.Errorf("read %+v, want %s handed out %d times", d, id, tries)
		}
	}
}

// Many entries were delivered lately. TakeOver still finds the entry behind them that has waited
// for long.
func TestTakingOverLooksAtAllEntries(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	k := open(t, keyspace.Config{CacheURL: server.URL()})
	alice := k.Events.Of(user(t, "alice"))
	if err := alice.CreateGroup(t.Context(), "events", "llm", keyspace.ID{}); err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		server.Do("XADD", "alice:events", fmt.Sprint("1-", n+1), "text", "a")
	}
	server.Do("XREADGROUP", "GROUP", "llm", "busy", "STREAMS", "alice:events", ">")
	server.Do("XCLAIM", "alice:events", "llm", "dead", "0", "1-40", "IDLE", "90000", "JUSTID")
	one := keyspace.Member{Space: alice, Stream: "events", Group: "llm", Name: "one"}
	var taken []string
	for from, ended := (keyspace.ID{}), false; !ended; ended = from == (keyspace.ID{}) {
		part, err := one.TakeOver(t.Context(), from, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if part.Taken != nil {
			taken = append(taken, part.Taken.ID.String())
		}
		from = part.Next
	}
	if strings.Join(taken, " ") != "1-40" {
		t.Errorf("taken over were %v, want 1-40", taken)
	}
}

// A group is destroyed while a member waits. The member gets ErrNoGroup, not the error of a Redis
// that is away.
func TestAMemberLearnsThatItsGroupIsGone(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*redistest.Server){
		"destroyed": func(s *redistest.Server) { s.Do("XGROUP", "DESTROY", "alice:events", "llm") },
		"emptied":   func(s *redistest.Server) { s.Do("FLUSHALL") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			k := open(t, keyspace.Config{CacheURL: server.URL()})
			alice := k.Events.Of(user(t, "alice"))
			if err := alice.CreateGroup(t.Context(), "events", "llm", keyspace.ID{}); err != nil {
				t.Fatal(err)
			}
			one := keyspace.Member{Space: alice, Stream: "events", Group: "llm", Name: "one"}
			read := make(chan error)
			go func() {
				_, err := one.Next(context.WithoutCancel(t.Context()), time.Minute)
				read <- err
			}()
			redistest.Eventually(t, "the reader waits", server.IsWaitedOn)
			lose(server)
			if err := <-read; !errors.Is(err, keyspace.ErrNoGroup) || keyspace.IsAway(err) {
				t.Errorf("while it waited: %v", err)
			}
		})
	}
}
