package actor

import (
	"context"
	"net/http"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAskFollowsTheRulesAndRemembersNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, tt := range []struct {
		name     string
		show     func(t *testing.T, p *peer)
		unsigned bool
		want     fault.Kind
	}{
		{"an actor", func(t *testing.T, p *peer) { p.show("/users/bob", p.person(t, "bob", 0)) }, false, 0},
		{"to a stranger, without its keys", func(t *testing.T, p *peer) {
			p.show("/users/bob", with(p.person(t, "bob", 0), vocab.Doc{"publicKey": nil, "assertionMethod": nil}))
		}, true, 0},
		{"signed, without its keys", func(t *testing.T, p *peer) {
			p.show("/users/bob", with(p.person(t, "bob", 0), vocab.Doc{"publicKey": nil, "assertionMethod": nil}))
		}, false, fault.Protocol},
		{"under the id of another server", func(t *testing.T, p *peer) {
			p.show("/users/bob", with(p.person(t, "bob", 0), vocab.Doc{"id": "https://elsewhere.example/users/bob"}))
		}, false, fault.Protocol},
		{"not shown", func(t *testing.T, p *peer) { p.status("/users/bob", http.StatusForbidden) }, false, fault.NotFound},
		{"deleted", func(t *testing.T, p *peer) { p.status("/users/bob", http.StatusGone) }, false, fault.Gone},
		{"a tombstone", func(t *testing.T, p *peer) {
			p.show("/users/bob", vocab.Doc{"id": string(p.id("/users/bob")), "type": "Tombstone"})
		}, false, fault.Gone},
		{"a tombstone of somebody else", func(t *testing.T, p *peer) {
			p.show("/users/bob", vocab.Doc{"id": "https://elsewhere.example/users/bob", "type": "Tombstone"})
		}, false, fault.Protocol},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, p := newNode(t, settings{}), newPeer(t)
			tt.show(t, p)
			keys, err := n.Local.keys.Instance()
			if err != nil {
				t.Fatal(err)
			}
			as := &keys
			if tt.unsigned {
				as = nil
			}
			a, answer, err := n.Ask(ctx, p.id("/users/bob"), as)
			checkKind(t, "Ask", err, tt.want)
			if err == nil && (!a.ID.Same(p.id("/users/bob")) || answer.Status != http.StatusOK || (answer.Dialect == 0) != tt.unsigned) {
				t.Errorf("Ask = %v, %+v", a, answer)
			}
			if a, err := n.Known(ctx, p.id("/users/bob")); a != nil || err != nil {
				t.Errorf("Known afterwards = %v, %v", a, err)
			}
		})
	}
}
