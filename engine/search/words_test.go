package search

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestATextIsSplitIntoWords(t *testing.T) {
	for text, want := range map[string][]string{
		"Hello, World-wide #ÄPFEL @bob@peer.example": {"hello", "world", "wide", "äpfel", "bob", "peer", "example"},
		"日本語 ok":                  {"日", "本", "語", "ok"},
		"a'b\\c 1e5 \x00":         {"a", "b", "c", "1e5"},
		"  ":                      nil,
		strings.Repeat("ä", 1000): {strings.Repeat("ä", maxWord/2)},
	} {
		if got := splitWords(text); !slices.Equal(got, want) {
			t.Errorf("%.40q is %q, want %q", text, got, want)
		}
	}
	if got := splitWords(strings.Repeat("a b ", maxWords)); len(got) != maxWords {
		t.Errorf("a long text has %d words, want %d", len(got), maxWords)
	}
}

func TestAQueryIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"Hello wor":           "('hello') & ('wor':*)",
		`"hello world" -spam`: "('hello' <-> 'world') & !('spam')",
		"foo-bar":             "('foo' <-> 'bar':*)",
		`say "unclosed quo`:   "('say') & ('unclosed' <-> 'quo')",
		"a ! & | b":           "('a') & ('b':*)",
		"':*) | ('x":          "('x':*)",
		"-no yes":             "!('no') & ('yes':*)",
		"- yes":               "('yes':*)",
	} {
		q, err := parseQuery(text)
		if err != nil || q.words != want {
			t.Errorf("%q is %s, %v; want %s", text, q.words, err, want)
		}
	}
	for _, text := range []string{"", " ", "-no", "!?", `""`, strings.Repeat("x", 201)} {
		if q, err := parseQuery(text); fault.KindOf(err) != fault.Invalid || err == nil {
			t.Errorf("%.20q is %s, %v; want a refusal", text, q.words, err)
		}
	}
}

func TestTheTextOfAnObjectIsWhatPeopleRead(t *testing.T) {
	read := func(raw string) string {
		d, err := vocab.ParseDoc([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		words := splitWords(objectText(d, vocab.Readable(d, nil)))
		slices.Sort(words)
		return strings.Join(slices.Compact(words), " ")
	}
	for raw, want := range map[string]string{
		`{"type":"Note","content":"<p class=\"x\">one <b>two</b></p><script>three</script>","summary":"four","name":"<i>five</i>"}`: "five four one two",
		`{"type":"Note","contentMap":{"en":"<p>cats</p>","de":"<p>Katzen</p>"},"summaryMap":{"en":"pets","de":"Tiere"}}`:            "cats katzen pets tiere",
		`{"type":"Tombstone","formerType":"Note"}`:                                                            "",
		`{"type":["Object","PrivateMessage"],"mediaType":"message/mls","encoding":"base64","content":"QUJD"}`: "",
	} {
		if got := read(raw); got != want {
			t.Errorf("%s has the words %q, want %q", raw, got, want)
		}
	}
}
