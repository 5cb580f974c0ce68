package keyspace_test

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// TEN-03: a program with access to al's stream reaches no other key. It does not reach alice's
// stream, whose name begins with the same letters.
func TestAccessReachesOneStreamOnly(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	k := open(t, keyspace.Config{CacheURL: r.URL()})
	al := user(t, "al")
	saved, err := k.Events.GrantAccess(t.Context(), k.Events.StreamAccess(al, "events", "secret"))
	if err != nil || saved {
		t.Fatalf("granted: saved %t, %v; want it not saved, as the server has no file", saved, err)
	}
	for _, name := range []string{"al", "alice"} {
		r.Do("XADD", name+":events", "1-1", "type", "create.received")
		r.Do("XGROUP", "CREATE", name+":events", "llm", "0")
	}
	for _, tt := range []struct{ call, answer string }{
		{"XRANGE al:events - +", ""},
		{"XREAD COUNT 1 STREAMS al:events 0", ""},
		{"XREADGROUP GROUP llm one COUNT 1 STREAMS al:events >", ""},
		{"XACK al:events llm 1-1", ""},
		{"XINFO GROUPS al:events", ""},
		{"XADD al:events:dead * why five", ""},
		{"XRANGE alice:events - +", "NOPERM"},
		{"XREADGROUP GROUP llm one COUNT 1 STREAMS alice:events >", "NOPERM"},
		{"XREAD COUNT 1 STREAMS al:events alice:events 0 0", "NOPERM"},
		{"XADD alice:events:dead * why five", "NOPERM"},
		{"XADD al:events * type forged", "NOPERM"},
		{"XTRIM al:events MAXLEN 0", "NOPERM"},
		{"XGROUP DESTROY al:events llm", "NOPERM"},
		{"DEL al:events", "NOPERM"},
		{"GET al:session:1", "NOPERM"},
		{"SET al:session:1 forged", "NOPERM"},
		{"KEYS *", "NOPERM"},
		{"SCAN 0", "NOPERM"},
		{"EVAL return(1) 0", "NOPERM"},
		{"ACL SETUSER lightweb-al allkeys", "NOPERM"},
		{"CONFIG GET *", "NOPERM"},
		{"FLUSHALL", "NOPERM"},
	} {
		answer := r.As("lightweb-al", "secret", strings.Fields(tt.call)...)
		if refused := strings.Contains(answer, "NOPERM"); refused != (tt.answer == "NOPERM") || strings.Contains(answer, "ERR") {
			t.Errorf("%s: %q, want %q", tt.call, answer, tt.answer)
		}
	}
	if answer := r.As("lightweb-al", "wrong", "XLEN", "al:events"); !strings.Contains(answer, "WRONGPASS") {
		t.Errorf("a wrong password: %q", answer)
	}
}

// After a second grant the password of the first grant is no longer valid.
func TestGrantedAgainTheEarlierPasswordIsGone(t *testing.T) {
	t.Parallel()
	r := redistest.Start(t)
	k := open(t, keyspace.Config{CacheURL: r.URL()})
	alice := user(t, "alice")
	for _, password := range []string{"first", "second"} {
		if _, err := k.Events.GrantAccess(t.Context(), k.Events.StreamAccess(alice, "events", password)); err != nil {
			t.Fatal(err)
		}
	}
	if answer := r.As("lightweb-alice", "first", "XLEN", "alice:events"); !strings.Contains(answer, "WRONGPASS") {
		t.Errorf("the earlier password: %q", answer)
	}
	if answer := r.As("lightweb-alice", "second", "XLEN", "alice:events"); answer != "0" {
		t.Errorf("the new password: %q", answer)
	}
}

// Every server of a cluster knows the Redis user until the access is revoked, because the stream
// may be on any server.
func TestAccessIsGrantedOnEveryServer(t *testing.T) {
	t.Parallel()
	url, nodes := redistest.Cluster(t)
	k := open(t, keyspace.Config{CacheURL: url})
	if _, err := k.Events.GrantAccess(t.Context(), k.Events.StreamAccess(user(t, "alice"), "events", "secret")); err != nil {
		t.Fatal(err)
	}
	for n, node := range nodes {
		if answer := node.As("lightweb-alice", "secret", "PING"); answer != "PONG" {
			t.Errorf("node %d: %q", n, answer)
		}
	}
	for range 2 { // the second call finds no such user
		if err := k.Events.RevokeAccess(t.Context(), user(t, "alice")); err != nil {
			t.Fatal(err)
		}
	}
	for n, node := range nodes {
		if answer := node.Do("ACL", "USERS"); answer != "default" {
			t.Errorf("after the access is revoked node %d has the users %q", n, answer)
		}
	}
}
