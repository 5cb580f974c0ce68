package actor

import (
	"context"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// explained signs a request with k. It returns the explanation of the request's signature, and the
// first refusal in it.
func (n *node) explained(t *testing.T, k signature.Key, want vocab.ID) (Explained, error) {
	t.Helper()
	r, body := n.signed(t, k, signature.RFC9421)
	seen, err := signature.Examine(r, body, signature.Options{Origin: n.local.Origin(), Now: n.clock.now()})
	if err != nil || len(seen.Signatures) != 1 {
		t.Fatalf("Examine = %+v, %v", seen, err)
	}
	x := n.verifier.Explain(context.Background(), seen.Signatures[0], want, nil)
	for _, f := range x.Findings {
		if f.Err != nil {
			return x, f.Err
		}
	}
	return x, nil
}

func TestExplainFindsWhatSignerDoes(t *testing.T) {
	t.Parallel()
	private, _ := theirs(t, 0)
	other, _ := theirs(t, 1)
	n, p := newNode(t, settings{}), newPeer(t)
	p.show("/users/bob", p.person(t, "bob", 0))
	for _, tt := range []struct {
		name string
		key  signature.Key
		want vocab.ID
		code string
	}{
		{"good", mainKey(p, "bob", private), p.id("/users/bob"), ""},
		{"of nobody in particular", mainKey(p, "bob", private), "", ""},
		{"another secret", mainKey(p, "bob", other), p.id("/users/bob"), "bad_signature"},
		{"not listed", signature.Key{ID: p.URL + "/users/bob#other", Private: private}, p.id("/users/bob"), "unknown_key"},
		{"nobody's", mainKey(p, "nobody", private), p.id("/users/nobody"), "unknown_key"},
		{"of another actor", mainKey(p, "bob", private), p.id("/users/carol"), "foreign_key"},
		{"of another server", mainKey(p, "bob", private), "https://them.example/users/carol", "foreign_key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x, err := n.explained(t, tt.key, tt.want)
			signer, refusal := n.signer(t, tt.key, signature.RFC9421, tt.want)
			if refusal == nil && tt.want != "" && !signer.ID.Same(tt.want) {
				refusal = refuseUnproven("foreign_key", "somebody else signed", nil) // Signer returns bob here, because a proof of carol's could still make the request valid
			}
			if code(err) != tt.code || code(refusal) != tt.code {
				t.Errorf("Explain found %v, and Signer %v, want %q of both", err, refusal, tt.code)
			}
			if (x.Key == nil) != (tt.code == "unknown_key") || (x.Owner == nil) != (x.Key == nil) {
				t.Errorf("owner %v, key %v", x.Owner, x.Key)
			}
		})
	}
	p.show("/users/bob", p.person(t, "bob", 1))
	n.clock.pass(refreshEvery)
	if x, err := n.explained(t, mainKey(p, "bob", other), p.id("/users/bob")); err != nil || !x.Renewed {
		t.Errorf("with a new key: %v, renewed %t, want that it was asked for again", err, x.Renewed)
	}
}

func TestAGivenActorHasItsKeysAndNoOthers(t *testing.T) {
	t.Parallel()
	n, p := newNode(t, settings{}), newPeer(t)
	bob, err := vocab.ActorOf(p.person(t, "bob", 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	v := VerifierOf(bob, n.verifier.gate, n.local.Origin())
	if a, err := v.actors.ByKey(t.Context(), p.id("/users/bob#main-key")); err != nil || a != bob {
		t.Errorf("its key is of %v, %v", a, err)
	}
	if a, err := v.actors.ByKey(t.Context(), p.id("/users/bob#other")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a key that it does not list is of %v, %v, want NotFound", a, err)
	}
}

func code(err error) string {
	if e := fault.Of(err); e != nil {
		return e.Code
	}
	return ""
}
