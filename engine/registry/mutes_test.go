package registry

import (
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

func muting(t *testing.T, m Moderation) Moderation {
	t.Helper()
	if err := m.validateMutes(); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMutedActorsAndDomains(t *testing.T) {
	t.Parallel()
	m := muting(t, Moderation{MutedActors: []vocab.ID{"https://p.example/users/bob"}, MutedDomains: []string{"Evil.example", "*.bücher.example"}})
	for id, want := range map[vocab.ID]bool{
		"https://p.example/users/bob": true, "HTTPS://P.example:443/users/bob": true, "https://p.example/users/bobby": false,
		"https://evil.example/a": true, "https://sub.evil.example:8443/a": true, "https://notevil.example/a": false, "https://xn--bcher-kva.example/a": true, "": false,
	} {
		if got := m.HidesActor(id); got != want {
			t.Errorf("HidesActor(%s) = %t", id, got)
		}
	}
	if (Moderation{}).HidesActor("https://p.example/users/bob") || (Moderation{}).HidesText("anything") || m.HasKeywords() {
		t.Error("what nobody muted is hidden")
	}
}

func TestMutedKeywordsAreWholeWords(t *testing.T) {
	t.Parallel()
	m := muting(t, Moderation{MutedKeywords: []string{"Cat", "big  deal", "#Election", "ÄRGER", "c++", "猫"}})
	for text, want := range map[string]bool{
		"a cat.": true, "CAT": true, "my-cat": true, "(cat)": true, "#cat": true, "cats": false, "concat": false, "cat_1": false, "concatenated cat": true, "catcat": false,
		"a Big\n deal!": true, "big dealer": false, "bigdeal": false,
		"#election": true, "the election": true, "elections": false,
		"so ein Ärger": true, "ärgerlich": false,
		"I write C++ now": true, "c+": false, "abc++": false,
		"私の猫です": true, "犬": false, "": false,
	} {
		if got := m.HidesText(text); got != want {
			t.Errorf("HidesText(%q) = %t", text, got)
		}
	}
}
