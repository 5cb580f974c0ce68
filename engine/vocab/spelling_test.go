package vocab

import (
	"cmp"
	"reflect"
	"testing"
)

func TestWhatIsStoredNamesInCanonicalForm(t *testing.T) {
	tests := []struct{ name, doc, want string }{
		{"nothing to change", `{"id":"HTTPS://M.example/1","actor":"https://m.example/u","to":"as:Public","cc":["acct:u@m.example",1]}`, ""},
		{"IDN-01 a text", `{"actor":"https://M.example/u","object":"https://m.example:443/1"}`, `{"actor":"https://m.example/u","object":"https://m.example/1"}`},
		{"IDN-01 a list", `{"to":["https://m.example/a","https://BÜCHER.example/b"],"name":"https://M.example/"}`,
			`{"to":["https://m.example/a","https://xn--bcher-kva.example/b"],"name":"https://M.example/"}`},
		{"IDN-01 what is embedded", `{"attributedTo":[{"type":"Person","id":"HTTPS://m.example/u"}],"tag":[{"type":"Mention","href":"https://M.example/v"}]}`,
			`{"attributedTo":[{"type":"Person","id":"https://m.example/u"}],"tag":[{"type":"Mention","href":"https://m.example/v"}]}`},
		{"IDN-01 what is quoted, in every form, and its stamp", `{"quote":"https://M.example/1","quoteUrl":"https://M.example/1","quoteUri":"https://M.example/1","_misskey_quote":"https://M.example/1","quoteAuthorization":"https://M.example/s"}`,
			`{"quote":"https://m.example/1","quoteUrl":"https://m.example/1","quoteUri":"https://m.example/1","_misskey_quote":"https://m.example/1","quoteAuthorization":"https://m.example/s"}`},
		{"within what is embedded it stays", `{"object":{"id":"https://m.example/1","to":"https://M.example/u"}}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := ParseDoc([]byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			was := string(d.JSON())
			want := tt.want
			if want == "" {
				want = was
			}
			w, _ := ParseDoc([]byte(want))
			if got, changed := d.WithCanonicalIDs(); !reflect.DeepEqual(got, w) || changed != (tt.want != "") {
				t.Errorf("got %s, want %s", got.JSON(), want)
			}
			if string(d.JSON()) != was {
				t.Errorf("the document itself became %s", d.JSON())
			}
		})
	}
}

func TestWhatLeavesIsSpelledAsItsServerDoes(t *testing.T) {
	var s Spelling
	s = s.Add("https://plain.example/u", "https://plain.example/u").Add("https://m.example/u", "https://M.example/u").Add("https://m.example/follow/1", "https://M.example/follow/1")
	d := Doc{"actor": "https://us.example/users/alice", "to": []any{"https://m.example/u", "https://plain.example/u"}, "content": "https://m.example/u",
		"object": Doc{"id": "https://m.example/follow/1", "actor": "https://m.example/u", "object": "https://us.example/users/alice"},
		"tag":    []any{Doc{"type": "Mention", "href": "https://m.example/u"}}}
	was := string(d.JSON())
	want := Doc{"actor": "https://us.example/users/alice", "to": []any{"https://M.example/u", "https://plain.example/u"}, "content": "https://m.example/u",
		"object": Doc{"id": "https://M.example/follow/1", "actor": "https://M.example/u", "object": "https://us.example/users/alice"},
		"tag":    []any{Doc{"type": "Mention", "href": "https://M.example/u"}}}
	if got := d.Spelled(s); !reflect.DeepEqual(got, want) {
		t.Errorf("got %s, want %s", got.JSON(), want.JSON())
	}
	if string(d.JSON()) != was {
		t.Errorf("the document itself became %s", d.JSON())
	}
}

func TestWithPlainTypes(t *testing.T) {
	const as = "https://www.w3.org/ns/activitystreams#"
	for _, tt := range []struct{ doc, want string }{
		{`{"type":"as:Note"}`, `{"type":"Note"}`},
		{`{"@type":["` + as + `Note","toot:X"]}`, `{"type":["Note","toot:X"]}`},
		{`{"type":"Note","@type":"Note"}`, `{"type":"Note"}`},
		{`{"type":"Create","object":[{"@type":"as:Note","tag":{"type":"as:Hashtag"}}]}`, `{"type":"Create","object":{"type":"Note","tag":[{"type":"Hashtag"}]}}`},
		{`{"type":"Announce","object":{"type":"Create","object":[{"type":"Note"}]}}`, `{"type":"Announce","object":{"type":"Create","object":{"type":"Note"}}}`},
		{`{"type":"Note","tag":[{"@type":"as:Hashtag"},"x",{"type":"as:Mention"}]}`, `{"type":"Note","tag":[{"type":"Hashtag"},"x",{"type":"Mention"}]}`},
		{`{"type":["Note","Article"],"object":"https://a.example/1","tag":[{"type":"Hashtag"}]}`, ""},
		{`{"type":"Create","object":["https://a.example/1"]}`, ""},
		{`{"type":"Note","@type":"Article"}`, ""}, // Type refuses it
		{`{"type":["as:","Note"]}`, ""},
		{`{}`, ""},
	} {
		d := parse(t, tt.doc)
		before := string(d.JSON())
		got, changed := d.WithPlainTypes()
		if want := cmp.Or(tt.want, tt.doc); changed != (tt.want != "") || string(got.JSON()) != string(parse(t, want).JSON()) {
			t.Errorf("%s becomes %s, changed: %t; want %s", tt.doc, got.JSON(), changed, want)
		}
		if string(d.JSON()) != before {
			t.Errorf("%s was changed to %s", tt.doc, d.JSON())
		}
	}
}
