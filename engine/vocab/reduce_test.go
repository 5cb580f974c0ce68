package vocab

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

// keptActor returns the actor of a document. It also returns the reduced actor that the engine
// stores.
func keptActor(t *testing.T, raw []byte) (whole, kept *Actor) {
	t.Helper()
	whole, err := ParseActor(raw)
	if err == nil {
		kept, err = whole.Reduced()
	}
	if err != nil {
		t.Fatal(err)
	}
	return whole, kept
}

// A reduced actor has the same fields and the same short profile as the whole actor.
func TestReducedActorsAreTheSame(t *testing.T) {
	for _, name := range []string{"mastodon/actor", "mastodon/moved_actor", "gotosocial/actor", "misskey/actor", "fedify/actor", "peertube/channel", "lemmy/community"} {
		t.Run(name, func(t *testing.T) {
			raw := readCase(t, name)
			whole, kept := keptActor(t, raw)
			if before, after := CardOf(whole.ID, readDoc(t, string(raw))), CardOf(kept.ID, readDoc(t, string(kept.Raw))); before != after {
				t.Errorf("it is shown as %+v, before as %+v", after, before)
			}
			again, err := ParseActor(kept.Raw)
			if err == nil {
				again, err = again.Reduced()
			}
			if err != nil || !bytes.Equal(again.Raw, kept.Raw) {
				t.Errorf("reduced again it is %s, %v; before %s", again.Raw, err, kept.Raw)
			}
			if len(kept.Raw) >= len(raw) {
				t.Errorf("reduced it has %d bytes, before it had %d", len(kept.Raw), len(raw))
			}
			whole.Raw, kept.Raw, kept.reduced = nil, nil, false
			if !reflect.DeepEqual(whole, kept) {
				t.Errorf("kept is\n%+v, want\n%+v", kept, whole)
			}
		})
	}
}

// Socialhome pads a key with thousands of newlines. They are not part of the key, so the stored
// key is short.
func TestPaddedKeysAreKept(t *testing.T) {
	const key = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"
	padded, err := json.Marshal(" \n" + key + strings.Repeat("\n", 13_905))
	if err != nil {
		t.Fatal(err)
	}
	whole, kept := keptActor(t, person(`"publicKey":{"id":"https://peer.example/carol#main-key","publicKeyPem":`+string(padded)+`}`))
	for name, a := range map[string]*Actor{"whole": whole, "kept": kept} {
		if len(a.Keys) != 1 || a.Keys[0].PEM != key {
			t.Errorf("the %s actor has %d keys, want one with the PEM text alone", name, len(a.Keys))
		}
	}
}

func TestReducedActorsAreBounded(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	ids := func(n, size int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"https://peer.example/%d/%s"`, i, long[:size])
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	key := func(size int) string {
		return `{"id":"https://peer.example/carol#main-key","owner":"https://peer.example/carol","publicKeyPem":"` + long[:size] + `"}`
	}
	for _, tt := range []struct {
		name, doc string
		holds     func(*Actor) bool
	}{
		{"members that nobody reads", `"attachment":["` + long + `"],"publicKey":` + key(800), func(a *Actor) bool { return len(a.Raw) < 2<<10 && a.Keys[0].PEM == long[:800] }},
		{"a long summary and name", `"summary":"` + long + `","name":"` + long + `"`, func(a *Actor) bool { return len(a.Raw) < 10<<10 && len(a.Name) == maxName }},
		{"words of controls", `"name":"` + strings.Repeat(`\u0001`, 30<<10) + `","publicKey":` + key(800), func(a *Actor) bool { return a.Name == "" && len(a.Keys) == 1 }},
		{"many aliases", `"alsoKnownAs":` + ids(200, 100), func(a *Actor) bool { return len(a.AlsoKnownAs) == maxAliases }},
		{"long aliases", `"alsoKnownAs":` + ids(150, 900) + `,"publicKey":` + key(800), func(a *Actor) bool { return len(a.AlsoKnownAs) == 0 && len(a.Keys) == 1 }},
		{"a key that is none", `"publicKey":[` + key(100<<10) + `,` + key(800) + `]`, func(a *Actor) bool { return len(a.Keys) == 1 && len(a.Keys[0].PEM) == 800 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, kept := keptActor(t, person(tt.doc)); len(kept.Raw) > maxReduced || !tt.holds(kept) {
				t.Errorf("kept are %d bytes: %.2000s", len(kept.Raw), kept.Raw)
			}
		})
	}
}

// The keys of an actor are too large together. The actor cannot be reduced, and is refused.
func TestActorsThatCannotBeReducedAreRefused(t *testing.T) {
	keys := make([]string, maxKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf(`{"id":"https://peer.example/carol#%d","owner":"https://peer.example/carol","publicKeyPem":"%s"}`, i, strings.Repeat("x", 4000))
	}
	a, err := ParseActor(person(`"publicKey":[` + strings.Join(keys, ",") + `]`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Reduced(); fault.KindOf(err) != fault.Invalid {
		t.Errorf("Reduced: %v, want Invalid", err)
	}
}
