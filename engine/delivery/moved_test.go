package delivery

import (
	"testing"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestWhatIsForOneMovesToThatOneAlone(t *testing.T) {
	t.Parallel()
	const old, own, shared = vocab.ID("https://p.example/in"), vocab.ID("https://p.example/bob/inbox"), vocab.ID("https://p.example/inbox")
	deps := &deps{}
	deps.known.Store(&vocab.Actor{ID: "https://p.example/bob", Inbox: own, SharedInbox: shared})
	s := &sender{Deps: &Deps{Actors: deps}}
	one, two := []vocab.ID{"https://p.example/bob"}, []vocab.ID{"https://p.example/bob", "https://p.example/eve"}
	for _, c := range []struct {
		name    string
		targets []vocab.ID
		digest  []byte
		want    vocab.ID
	}{
		{"a letter to one", one, nil, own},
		{"a letter to two behind one inbox", two, nil, ""},
		{"a post for followers", two, make([]byte, 32), shared},
	} {
		got, _ := s.findMovedInbox(t.Context(), &row{Delivery: db.Delivery{Inbox: old, Targets: c.targets, FollowersDigest: c.digest}})
		if got != c.want {
			t.Errorf("%s moves to %q, want %q", c.name, got, c.want)
		}
	}
}
