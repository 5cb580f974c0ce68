package delivery

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestEd25519IsUsedWhereItIsKnownToBeTaken(t *testing.T) {
	t.Parallel()
	taking, err := vocab.ParseActor([]byte(`{"id":"https://p.example/u","type":"Person","inbox":"https://p.example/inbox",
		"generator":{"type":"Application","implements":[{"href":"https://datatracker.ietf.org/doc/html/rfc9421#name-eddsa-using-curve-edwards25"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		known *vocab.Actor
		want  bool
	}{
		{"nothing is known", nil, false},
		{"an actor that says nothing of it", &vocab.Actor{ID: "https://p.example/u"}, false},
		{"an actor whose server takes it", taking, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var got []bool
				b := newBench(t, func(_ context.Context, p transport.Post) (transport.Attempt, error) {
					got = append(got, p.Ed25519)
					return transport.Attempt{Status: 202}, nil
				})
				b.deps.known.Store(tt.known)
				b.m.add("Create", "p.example", 1, 0)
				b.run(t)
				if len(got) != 1 || got[0] != tt.want {
					t.Errorf("posted with Ed25519 %v, want %v once", got, tt.want)
				}
			})
		})
	}
}

// A process leases a delivery, and the post is deleted before the process reads the delivery's
// body. The delivery is skipped.
func TestAWithdrawnPostIsNotSent(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"p.example", ""} {
		synctest.Test(t, func(t *testing.T) {
			posts := 0
			b := newBench(t, func(context.Context, transport.Post) (transport.Attempt, error) {
				posts++
				return transport.Attempt{Status: 202}, nil
			})
			b.m.rows[b.m.add("Create", host, 1, 0)].Body = nil
			b.run(t)
			if got := b.m.row(0).status; posts != 0 || got != user.DeliverySkipped {
				t.Errorf("to %q: %d posts, and the delivery is %s, want none and skipped", host, posts, got)
			}
		})
	}
}

func TestWhatAHostSaysDecidesItsHealth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		a    transport.Attempt
		err  error
		want reaction
	}{
		{"taken", transport.Attempt{Status: 202}, nil, answered},
		{"refused", transport.Attempt{Status: 403}, nil, answered},
		{"gone", transport.Attempt{Status: 410}, nil, answered},
		{"too many, without a time", transport.Attempt{Status: 429}, nil, answered},
		{"too many", transport.Attempt{Status: 429, RetryAfter: time.Hour}, nil, deferring},
		{"unavailable, with a time", transport.Attempt{Status: 503, RetryAfter: time.Hour}, nil, deferring},
		{"unavailable", transport.Attempt{Status: 503}, nil, silent},
		{"broken", transport.Attempt{Status: 500}, nil, silent},
		{"a type that it does not have", transport.Attempt{Status: 501}, nil, answered},
		{"no answer", transport.Attempt{}, fault.New(fault.Unavailable, "timeout"), silent},
		{"no such host", transport.Attempt{}, fault.New(fault.NoHost, "no such host"), silent},
		{"blocked by us", transport.Attempt{}, fault.New(fault.Forbidden, "blocked"), noReaction},
		{"paused by us", transport.Attempt{}, transport.ErrPaused, noReaction},
		{"this process was stopped", transport.Attempt{}, fmt.Errorf("post: %w", transport.ErrHalted), noReaction},
	} {
		if got := judgeHost(tt.a, tt.err); got != tt.want {
			t.Errorf("%s: heard %d, want %d", tt.name, got, tt.want)
		}
	}
}

// keysByName is a set of keys. The id of each key is the name of its owner.
type keysByName struct{}

func (keysByName) Keys(u vocab.Username) (transport.Keys, error) {
	return transport.Keys{RSA: signature.Key{ID: u.String()}}, nil
}

func (keysByName) Instance() (transport.Keys, error) {
	return transport.Keys{RSA: signature.Key{ID: "instance"}}, nil
}

func TestADeliveryIsSignedByItsSender(t *testing.T) {
	t.Parallel()
	s := &sender{Deps: &Deps{Keys: keysByName{}}}
	for instance, want := range map[bool]string{false: "alice", true: "instance"} {
		keys, err := s.loadKeys(t.Context(), &row{Delivery: user.Delivery{Instance: instance}, user: alice})
		if err != nil || keys.RSA.ID != want {
			t.Errorf("by the instance: %t; signed with the keys of %s, %v; want %s", instance, keys.RSA.ID, err, want)
		}
	}
}

func TestThePostSaysThatItTakesSomethingBack(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{"Create": false, "Delete": true, "Undo": true} {
		synctest.Test(t, func(t *testing.T) {
			var got []bool
			b := newBench(t, func(_ context.Context, p transport.Post) (transport.Attempt, error) {
				got = append(got, p.TakesBack)
				return transport.Attempt{Status: 202}, nil
			})
			b.m.add(kind, "p.example", 1, 0)
			b.run(t)
			if len(got) != 1 || got[0] != want {
				t.Errorf("%s: posted with TakesBack %v, want %t once", kind, got, want)
			}
		})
	}
}
