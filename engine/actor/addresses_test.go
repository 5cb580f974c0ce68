package actor

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

func TestWhoHoldsAnID(t *testing.T) {
	t.Parallel()
	a := newAddresses("https://us.example")
	for _, tt := range []struct {
		name         string
		id           vocab.ID
		user, rest   string // the results of Holder; user is "" if the id belongs to no user
		owner, inbox bool
		foreign      bool
	}{
		{name: "an actor", id: "https://us.example/users/alice", user: "alice", owner: true},
		{name: "another spelling of the origin", id: "HTTPS://US.example:443/users/alice", user: "alice", owner: true},
		{name: "an inbox", id: "https://us.example/users/alice/inbox", user: "alice", rest: "/inbox", inbox: true},
		{name: "an object", id: "https://us.example/users/alice/objects/1", user: "alice", rest: "/objects/1"},
		{name: "a key", id: "https://us.example/users/alice#main-key", user: "alice", rest: "#main-key"},
		{name: "a query", id: "https://us.example/users/alice?x", user: "alice", rest: "?x"},
		{name: "a slash too many", id: "https://us.example/users/alice/", user: "alice", rest: "/"},
		{name: "a longer name", id: "https://us.example/users/alice2", user: "alice2", owner: true},
		{name: "NAM-03 capitals", id: "https://us.example/users/Alice"},
		{name: "NAM-03 reserved", id: "https://us.example/users/admin"},
		{name: "NAM-02 traversal", id: "https://us.example/users/..%2f..%2fkeys"},
		{name: "NAM-02 a path", id: "https://us.example/users/../alice"},
		{name: "no name", id: "https://us.example/users/"},
		{name: "no user", id: "https://us.example/actor"},
		{name: "the origin", id: "https://us.example"},
		{name: "another host", id: "https://them.example/users/alice", foreign: true},
		{name: "a longer host", id: "https://us.example.evil/users/alice", foreign: true},
		{name: "another port", id: "https://us.example:8443/users/alice", foreign: true},
		{name: "another scheme", id: "http://us.example/users/alice", foreign: true},
		{name: "no id", id: "", foreign: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, rest, ok := a.Holder(tt.id)
			if u.String() != tt.user || rest != tt.rest || ok != (tt.user != "") {
				t.Errorf("Holder = %q, %q, %v", u, rest, ok)
			}
			if u, ok := a.Owner(tt.id); ok != tt.owner || ok && u.String() != tt.user || !ok && !u.IsZero() {
				t.Errorf("Owner = %q, %v", u, ok)
			}
			if u, ok := a.InboxOwner(tt.id); ok != tt.inbox || ok && u.String() != tt.user {
				t.Errorf("InboxOwner = %q, %v", u, ok)
			}
			if got := a.IsLocal(tt.id); got == tt.foreign {
				t.Errorf("IsLocal = %v", got)
			}
		})
	}
	alice := username(t, "alice")
	first := a.NewObjectID(alice)
	if u, rest, _ := a.Holder(first); u != alice || !strings.HasPrefix(rest, "/objects/0") {
		t.Errorf("NewObjectID = %s", first)
	}
	if next := a.NewObjectID(alice); next <= first {
		t.Errorf("%s does not come after %s", next, first)
	}
	if id := a.NewActivityID(alice); !strings.HasPrefix(string(id), "https://us.example/users/alice/activities/") {
		t.Errorf("NewActivityID = %s", id)
	}
	if a.Handle(alice) != "@alice@us.example" || a.Host() != "us.example" || a.Origin() != "https://us.example" {
		t.Errorf("Handle = %s", a.Handle(alice))
	}
}
