package vocab

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
)

// addHabits adds documents in the forms that real servers send to the corpus of f.
func addHabits(f *testing.F) {
	f.Helper()
	err := filepath.WalkDir(habits, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err == nil {
			f.Add(b)
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
}

func FuzzParseActivity(f *testing.F) {
	addHabits(f)
	for _, s := range []string{
		`{"@id":"https://a.example/1","@type":["as:Like"],"actor":{"href":"https://a.example/u"},"object":null}`,
		`{"id":["x"],"@id":["x"],"type":[{}],"@type":[{}]}`,
		`{"id":"https://a.example/1","type":"Like","actor":"https://a.example/u","to":["Public",{"id":"https://b.example/"}],"published":"2016-12-31T23:59:60Z"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := ParseActivity(raw)
		if err != nil {
			if a != nil || fault.KindOf(err) != fault.Invalid {
				t.Fatalf("ParseActivity = %+v, %v; want nothing and invalid", a, err)
			}
			return
		}
		if a.ID.Host() == "" || a.Actor.Host() == "" || a.Actor == Public || a.Type == "" {
			t.Fatalf("an activity without id, actor or type: %+v", a)
		}
		if bytes.IndexByte(a.Doc.JSON(), 0) >= 0 || !utf8.Valid(a.Doc.JSON()) {
			t.Fatal("the document holds what PostgreSQL cannot")
		}
		for _, id := range append(a.All(), a.ID, a.Actor) {
			if id.Host() == "" || len(id) > MaxID || !id.Same(id.Canonical()) {
				t.Fatalf("%q is no id", id)
			}
		}
		if _, err := a.Published.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
		back, err := ParseActivity(a.Doc.JSON())
		if err != nil {
			t.Fatalf("written and read again: %v", err)
		}
		back.Raw = a.Raw
		if !reflect.DeepEqual(back, a) {
			t.Fatalf("written and read again it is\n%+v, was\n%+v", back, a)
		}
		if o, err := ObjectOf(a.Object.Doc); err == nil && (o.ID != a.Object.ID || o.Type == "") {
			t.Fatalf("object %+v of activity %+v", o, a)
		}
	})
}

func FuzzParseActor(f *testing.F) {
	addHabits(f)
	f.Add([]byte(`{"@id":"https://a.example/1","@type":["as:Person"],"inbox":["https://A.example:443/inbox"],"publicKey":["https://a.example/k",{"id":7}],"nameMap":{"en":"a\u202eb"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := ParseActor(raw)
		if err != nil {
			if a != nil || fault.KindOf(err) != fault.Invalid {
				t.Fatalf("ParseActor = %+v, %v; want nothing and invalid", a, err)
			}
			return
		}
		if !IsActorType(a.Type) || a.Inbox == "" || len(a.Keys) > maxKeys {
			t.Fatalf("no actor: %+v", a)
		}
		for _, id := range []ID{a.Inbox, a.Outbox, a.SharedInbox, a.Followers, a.Following} {
			if id != "" && !id.SameOrigin(a.ID) {
				t.Fatalf("%q is not of the origin of %q", id, a.ID)
			}
		}
		for _, k := range a.Keys {
			if k.ID.Host() == "" || k.Owner != "" && k.Owner.Host() == "" {
				t.Fatalf("key %+v", k)
			}
		}
		if strings.ContainsAny(a.PreferredUsername, "@/<> \n") || strings.ContainsAny(a.Name, "\n\u202e") || !utf8.ValidString(a.Name) {
			t.Fatalf("names %q and %q", a.PreferredUsername, a.Name)
		}
		d, err := ParseDoc(raw)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseActor(d.JSON())
		if err != nil {
			t.Fatalf("written and read again: %v", err)
		}
		back.Raw = a.Raw
		if !reflect.DeepEqual(back, a) {
			t.Fatalf("written and read again it is\n%+v, was\n%+v", back, a)
		}
	})
}

func FuzzHTMLToText(f *testing.F) {
	for _, s := range []string{"<p>a<br>b</p>", "see https://e.example/a, @bob@p.example &amp; #go", "<script/>a</script>b", "<pre>a\n b</pre>", "&lt;&#0;", "<!--", "a\xffb", "<td> <style>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := HTMLToText(s)
		if !utf8.ValidString(text) || strings.Contains(text, "\n\n\n") {
			t.Fatalf("HTMLToText(%q) = %q", s, text)
		}
		if again := HTMLToText(TextToHTML(text, func(s Span) string { return "https://x.example/" + s.Text })); again != normalized(text) {
			t.Fatalf("%q said in HTML says %q, want %q", text, again, normalized(text))
		}
	})
}

// plainOrigin agrees with parseAnyURI, which is slower.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"https://peer.example/notes/1?a=b#c", "http://127.0.0.1:8080/a", "https://peer.example:443", "http://a:080/", "https://a..b/", "https://a/%zz",
		"https://a@b/", "https://-a_.b:65535//?#", "https://a#/../", "https://a:b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n := plainOrigin(s)
		if n == 0 {
			return
		}
		scheme, authority, err := parseAnyURI(s)
		if err != nil || scheme+"://"+authority != s[:n] {
			t.Errorf("plainOrigin(%q) = %q; parsed with care it is %q, %q, %v", s, s[:n], scheme, authority, err)
		}
	})
}
