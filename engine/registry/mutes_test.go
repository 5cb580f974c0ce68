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

// A muted keyword is found in every language of a post, because a reader may see any of them.
func TestMutedKeywordsAreFoundInEveryLanguage(t *testing.T) {
	t.Parallel()
	m := muting(t, Moderation{MutedKeywords: []string{"spoiler"}})
	for raw, want := range map[string]bool{
		`{"content":"<p>a <b>spoiler</b></p>"}`:                                          true,
		`{"contentMap":{"en":"<p>a <b>spoi</b>ler</p>"}}`:                                true,
		`{"content":"ok","contentMap":{"en":"ok","de":"<p>ein Spoiler</p>"}}`:            true,
		`{"content":"ok","name":"ok","nameMap":{"de":"ein Spoiler"}}`:                    true,
		`{"content":"ok","summaryMap":{"de":"ein <i>Spoiler</i>"}}`:                      true,
		`{"mediaType":"text/plain","contentMap":{"en":"a\nspoiler"}}`:                    true,
		`{"content":"ok","source":{"content":"a spoiler","mediaType":"text/plain"}}`:     true,
		`{"content":"ok","contentMap":{"de":"<p class=\"spoiler\">Spoilern</p>"}}`:       false,
		`{"content":"ok","contentMap":{"not a language":"spoiler"},"nameMap":"spoiler"}`: false,
	} {
		d, err := vocab.ParseDoc([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := m.HidesWords(d); got != want {
			t.Errorf("HidesWords(%s) = %t", raw, got)
		}
	}
}
