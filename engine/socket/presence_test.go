package socket_test

import (
	"context"
	"strings"
	"testing"
)

// The key of a user's presence is lost, for example in an outage of Redis. It is stored again once
// a program shows that it is connected. Users who already know of the presence are not told again.
func TestPresenceThatWasLostComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := r.friends()
	p, early := r.program(alice, maySignal), r.program(bob, maySignal)
	p.Signal(t.Context(), []byte(`{"type":"presence","state":"away"}`))
	r.redis.Do("FLUSHALL")
	p.KeepPresent(t.Context())
	late := r.program(bob, maySignal)
	if got := late.last("presence"); late.count("presence") != 1 || got.State != "away" {
		t.Errorf("a program that comes is told %+v, want that alice is away", late.all)
	}
	if ttl := r.redis.Do("TTL", "alice:presence"); !strings.HasPrefix(ttl, "8") && !strings.HasPrefix(ttl, "9") {
		t.Errorf("presence lasts %s s, want 90", ttl)
	}
	if got := early.count("presence"); got != 1 {
		t.Errorf("bob is told %d times, want once", got)
	}
	r.redis.Do("FLUSHALL")
	p.leave()
	p.KeepPresent(t.Context())
	if got := r.redis.Do("EXISTS", "alice:presence"); got != "0" {
		t.Error("a program that has left makes its user present")
	}
}

// A state of presence could not be stored. It is shown once the program shows that it is
// connected.
func TestPresenceThatCouldNotBeStoredIsShownWhenItCan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	alice, bob := r.friends()
	p, early := r.program(alice, maySignal), r.program(bob, maySignal)
	ended, end := context.WithCancel(t.Context())
	end()
	p.Signal(ended, []byte(`{"type":"presence","state":"online"}`))
	p.KeepPresent(t.Context())
	if got := early.last("presence"); got.State != "online" {
		t.Errorf("bob is told %+v, want that alice is online", got)
	}
}
