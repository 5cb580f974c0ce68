package vocab

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

const habits = "../../testdata/activities"

// readCase reads a handwritten document, such as "mastodon/create_note". Each document has the
// form that some software sends.
func readCase(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(habits, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// activity returns an activity with the additional members in changes. They are JSON without
// braces.
func activity(changes string) []byte {
	return []byte(`{"id":"https://peer.example/1","type":"Like","actor":"https://peer.example/carol",` + changes + `}`)
}

func TestParseActivityOfEverySoftware(t *testing.T) {
	const alice ID = "https://lightweb.example/users/alice"
	tests := []struct {
		name       string
		typ        string
		actor      ID
		object     ID
		objectType string
		public     bool
		names      []ID
		published  string
	}{
		{"mastodon/create_note", "Create", "https://mastodon.example/users/carol", "https://mastodon.example/users/carol/statuses/112",
			"Note", true, []ID{alice, "https://mastodon.example/users/carol/followers"}, "2024-05-01T09:30:00Z"},
		{"mastodon/poll_vote", "Create", "https://mastodon.example/users/carol", "https://mastodon.example/users/carol#votes/5",
			"Note", false, []ID{alice}, ""},
		{"mastodon/delete_actor", "Delete", "https://mastodon.example/users/carol", "https://mastodon.example/users/carol",
			"", true, nil, ""},
		{"mastodon/undo_follow", "Undo", "https://mastodon.example/users/carol", "https://mastodon.example/c0ffee00-1111-4222-8333-444455556666",
			"Follow", false, nil, ""},
		{"gotosocial/create_note", "Create", "https://gts.example/users/erin", "https://gts.example/users/erin/statuses/01HX",
			"Note", true, []ID{"https://gts.example/users/erin/followers"}, "2024-05-03T10:00:00Z"},
		{"misskey/create_note", "Create", "https://misskey.example/users/9abc", "https://misskey.example/notes/9xyz",
			"Note", true, []ID{"https://misskey.example/users/9abc/followers"}, "2024-05-04T01:02:03.456Z"},
		{"misskey/like", "Like", "https://misskey.example/users/9abc", "https://lightweb.example/users/alice/objects/1",
			"", false, nil, ""},
		{"fedify/create_note", "Create", "https://fedify.example/ap/users/gil", "https://fedify.example/ap/notes/1",
			"Note", true, []ID{alice, "https://fedify.example/ap/users/gil/followers"}, "2026-01-02T03:04:05.123456789Z"},
		{"fedify/accept_follow", "Accept", "https://fedify.example/ap/users/gil", "https://lightweb.example/users/alice/activities/3",
			"Follow", false, []ID{alice}, ""},
		{"peertube/create_video", "Create", "https://peertube.example/accounts/hana", "https://peertube.example/videos/watch/77",
			"Video", true, []ID{"https://peertube.example/video-channels/bees/followers"}, ""},
		{"lemmy/announce_create", "Announce", "https://lemmy.example/c/beekeeping", "https://lemmy.example/activities/create/c1",
			"Create", true, []ID{"https://lemmy.example/c/beekeeping/followers"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw := readCase(t, tt.name)
			a, err := ParseActivity(raw)
			if err != nil {
				t.Fatal(err)
			}
			if a.Type != tt.typ || a.Actor != tt.actor || a.Object.ID != tt.object || a.Object.Type() != tt.objectType {
				t.Errorf("%s by %s of %s %s; want %s by %s of %s %s", a.Type, a.Actor, a.Object.Type(), a.Object.ID,
					tt.typ, tt.actor, tt.objectType, tt.object)
			}
			if public(a.Addressing) != tt.public {
				t.Errorf("public: %t, want %t", public(a.Addressing), tt.public)
			}
			for _, id := range tt.names {
				if !slices.Contains(a.All(), id) {
					t.Errorf("names %q, want %s among them", a.All(), id)
				}
			}
			if got := a.Published; !got.IsZero() != (tt.published != "") || tt.published != "" && got.Format(time.RFC3339Nano) != tt.published {
				t.Errorf("published %v, want %q", got, tt.published)
			}
			if !bytes.Equal(a.Raw, raw) {
				t.Error("Raw is not what was received")
			}
		})
	}
}

func TestObjectOfEverySoftware(t *testing.T) {
	tests := []struct {
		name, typ, content    string
		attributed, repliesTo ID
		public                bool
	}{
		{"mastodon/create_note", "Note", "@alice the bees & I agree", "https://mastodon.example/users/carol",
			"https://lightweb.example/users/alice/objects/1", true},
		{"mastodon/poll_vote", "Note", "", "https://mastodon.example/users/carol", "https://lightweb.example/users/alice/objects/2", false},
		{"gotosocial/create_note", "Note", "slow and steady", "https://gts.example/users/erin", "", true},
		{"misskey/create_note", "Note", "にゃん\nRE: https://mastodon.example/users/carol/statuses/112", "https://misskey.example/users/9abc", "", true},
		{"fedify/create_note", "Note", "안녕", "https://fedify.example/ap/users/gil", "", true},
		{"peertube/create_video", "Video", "How **bees** talk", "https://peertube.example/accounts/hana", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := ParseActivity(readCase(t, tt.name))
			if err != nil {
				t.Fatal(err)
			}
			o, err := ObjectOf(a.Object.Doc)
			if err != nil {
				t.Fatal(err)
			}
			if o.Type != tt.typ || o.AttributedTo != tt.attributed || o.InReplyTo != tt.repliesTo || public(o.Addressing) != tt.public {
				t.Errorf("%s by %q in reply to %q, public: %t; want %s by %q in reply to %q, public: %t",
					o.Type, o.AttributedTo, o.InReplyTo, public(o.Addressing), tt.typ, tt.attributed, tt.repliesTo, tt.public)
			}
			if got := HTMLToText(o.Doc.Words("content")); got != tt.content {
				t.Errorf("it says %q, want %q", got, tt.content)
			}
		})
	}
}

func TestParseActivityTakes(t *testing.T) {
	tests := []struct {
		name, changes string
		check         func(*Activity) bool
	}{
		{"AS-01 no object", `"object":null`, func(a *Activity) bool { return a.Object.IsZero() }},
		{"AS-01 list of one object", `"object":["https://peer.example/o"]`, func(a *Activity) bool { return a.Object.ID == "https://peer.example/o" }},
		{"an object without id", `"object":{"type":"Note"}`, func(a *Activity) bool { return a.Object.ID == "" && a.Object.Type() == "Note" }},
		{"an object with an empty id", `"object":{"id":"","type":"Follow"}`, func(a *Activity) bool { return a.Object.ID == "" && a.Object.Type() == "Follow" }},
		{"an empty target", `"target":""`, func(a *Activity) bool { return a.Target.IsZero() }},
		{"a target", `"target":{"id":"https://new.example/u"}`, func(a *Activity) bool { return a.Target.ID == "https://new.example/u" }},
		{"AS-03 absent context", `"x":1`, func(a *Activity) bool { return a.ID == "https://peer.example/1" }},
		{"AS-03 context in a list, nested", `"@context":[["https://www.w3.org/ns/activitystreams"],{"a":"b"},null]`, func(*Activity) bool { return true }},
		{"AS-03 a foreign context: that of ActivityStreams applies all the same", `"@context":"https://peer.example/ns"`, func(a *Activity) bool { return a.Type != "" && a.Actor != "" }},
		{"AS-03 context as an object", `"@context":{"@vocab":"https://www.w3.org/ns/activitystreams"}`, func(*Activity) bool { return true }},
		{"PAR-11 a context that renames changes nothing", `"@context":{"actor":"as:object","victim":"as:actor"},"victim":"https://other.example/"`,
			func(a *Activity) bool { return a.Actor == "https://peer.example/carol" }},
		{"PAR-11 full names are not followed", `"https://www.w3.org/ns/activitystreams#actor":"https://other.example/","as:actor":"https://other.example/"`,
			func(a *Activity) bool { return a.Actor == "https://peer.example/carol" }},
		{"PAR-11 graphs are not followed", `"@graph":[{"actor":"https://other.example/"}],"@nest":{"actor":"https://other.example/"}`,
			func(a *Activity) bool { return a.Actor == "https://peer.example/carol" }},
		{"PAR-05 names that differ by case are other names", `"Actor":"https://other.example/","ID":"https://other.example/2","Type":"Delete"`,
			func(a *Activity) bool {
				return a.Actor == "https://peer.example/carol" && a.ID == "https://peer.example/1" && a.Type == "Like"
			}},
		{"AS-10 a malformed time is none", `"published":"soon"`, func(a *Activity) bool { return a.Published.IsZero() }},
		{"AS-11 durations are kept", `"duration":"P1D"`, func(a *Activity) bool { return a.Doc.Text("duration") == "P1D" }},
		{"AS-17 unknown properties are kept", `"ext:x":{"y":[1]}`, func(a *Activity) bool { return a.Doc.Sub("ext:x") != nil }},
		{"AS-18 IDN-01 ids are canonical, the document stays as written", `"object":"HTTPS://P:443/a"`, func(a *Activity) bool {
			return a.Object.ID == "https://p/a" && a.Doc.Text("object") == "HTTPS://P:443/a"
		}},
		{"AS-19 a number beyond 64 bits", `"totalItems":99999999999999999999,"x":-1`, func(*Activity) bool { return true }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := ParseActivity(activity(tt.changes))
			if err != nil || !tt.check(a) {
				t.Errorf("ParseActivity(%s) = %+v, %v", tt.changes, a, err)
			}
		})
	}
}

func TestAReportIsAboutNoOneThing(t *testing.T) {
	for _, objects := range []string{`"https://peer.example/a"`, `["https://peer.example/a","https://peer.example/b"]`} {
		a, err := ParseActivity([]byte(`{"id":"https://peer.example/1","type":"Flag","actor":"https://peer.example/actor","object":` + objects + `}`))
		if err != nil || !a.Object.IsZero() {
			t.Errorf("ParseActivity of a Flag of %s = %+v, %v; want no object", objects, a, err)
		}
	}
}

func TestParseActivityRefuses(t *testing.T) {
	many := strings.Repeat(`"https://peer.example/a",`, maxAddressed) + `"https://peer.example/a"`
	tests := []struct{ name, doc string }{
		{"no type", `{"id":"https://peer.example/1","actor":"https://peer.example/carol"}`},
		{"no id", `{"type":"Like","actor":"https://peer.example/carol"}`},
		{"ORG-22 id null", `{"id":null,"type":"Like","actor":"https://peer.example/carol"}`},
		{"ORG-22 id empty", `{"id":"","type":"Like","actor":"https://peer.example/carol"}`},
		{"an empty actor", `{"id":"https://peer.example/1","type":"Like","actor":""}`},
		{"no actor", `{"id":"https://peer.example/1","type":"Like"}`},
		{"AS-01 actor null", `{"id":"https://peer.example/1","type":"Like","actor":null}`},
		{"AS-01 actor an empty list", `{"id":"https://peer.example/1","type":"Like","actor":[]}`},
		{"AS-07 actor a number", `{"id":"https://peer.example/1","type":"Offer","actor":90}`},
		{"ORG-03 actor a bare name", `{"id":"https://peer.example/1","type":"Like","actor":"carol"}`},
		{"ORG-05 two actors", `{"id":"https://peer.example/1","type":"Like","actor":["https://peer.example/carol","https://peer.example/dave"]}`},
		{"an actor without id", `{"id":"https://peer.example/1","type":"Like","actor":{"type":"Person"}}`},
		{"everybody as actor", `{"id":"https://peer.example/1","type":"Like","actor":"as:Public"}`},
		{"everybody as actor, embedded", `{"id":"https://peer.example/1","type":"Like","actor":{"id":"` + string(Public) + `"}}`},
		{"PAR-11 a graph", `{"@graph":[{"id":"https://peer.example/1","type":"Like","actor":"https://peer.example/carol"}]}`},
		{"AS-07 object a number", string(activity(`"object":23`))},
		{"ORG-08 several objects", string(activity(`"object":["https://peer.example/a","https://peer.example/b"]`))},
		{"target a truth value", string(activity(`"target":true`))},
		{"AS-07 to a number", string(activity(`"to":5`))},
		{"audience a nested list", string(activity(`"audience":[["as:Public"]]`))},
		{"PAR-03 1001 addressed", string(activity(`"to":[` + many + `]`))},
		{"PAR-03 1001 addressed in hidden fields, of no use", string(activity(`"bcc":[` + strings.Repeat(`"x",`, maxAddressed) + `"x"]`))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if a, err := ParseActivity([]byte(tt.doc)); fault.KindOf(err) != fault.Invalid || a != nil {
				t.Errorf("ParseActivity = %+v, %v; want invalid", a, err)
			}
		})
	}
}

func TestThousandMayBeAddressed(t *testing.T) {
	var to []string
	for i := range maxAddressed {
		to = append(to, `"https://peer.example/`+strconv.Itoa(i)+`"`)
	}
	a, err := ParseActivity(activity(`"to":[` + strings.Join(to, ",") + `]`))
	if err != nil || len(a.All()) != maxAddressed {
		t.Errorf("ParseActivity: %v, want %d addressed", err, maxAddressed)
	}
}

func TestListsAreBounded(t *testing.T) {
	for _, l := range maxValues {
		list := func(n int) string {
			return `"` + l.name + `":[` + strings.TrimSuffix(strings.Repeat(`"https://peer.example/x",`, n), ",") + `]`
		}
		for _, tt := range []struct {
			name string
			read func(n int) error
		}{
			{"the activity's", func(n int) error {
				_, err := ParseActivity([]byte(`{"id":"https://p/1","type":"Create","actor":"https://p/a",` + list(n) + `}`))
				return err
			}},
			{"of what it carries", func(n int) error {
				_, err := ParseActivity([]byte(`{"id":"https://p/1","type":"Create","actor":"https://p/a","object":{"id":"https://p/2",` + list(n) + `}}`))
				return err
			}},
			{"of what was fetched", func(n int) error {
				_, err := ObjectOf(Doc{"id": "https://p/2", "type": "Note", l.name: slices.Repeat([]any{"https://peer.example/x"}, n)})
				return err
			}},
		} {
			if l.name == "type" && tt.name == "the activity's" {
				continue // the document already has this member
			}
			if err := tt.read(l.values + 1); fault.KindOf(err) != fault.Invalid || fault.Of(err).Pointer != "/"+l.name {
				t.Errorf("PAR-03 PAR-18 %s %s: one more than %d: %v, want invalid", tt.name, l.name, l.values, err)
			}
			if err := tt.read(l.values); err != nil {
				t.Errorf("%s %s: %d: %v", tt.name, l.name, l.values, err)
			}
		}
	}
}

func TestPublicIsToldByThreeFormsInToAndCc(t *testing.T) {
	for _, form := range []string{string(Public), "as:Public", "Public"} {
		for _, tt := range []struct {
			field string
			want  bool
		}{{"to", true}, {"cc", true}, {"audience", false}, {"bto", false}, {"bcc", false}} {
			for _, value := range []string{`"` + form + `"`, `["https://peer.example/x","` + form + `"]`, `{"id":"` + string(Public) + `"}`} {
				t.Run("AS-05 PRV-08 "+tt.field+" "+value, func(t *testing.T) {
					a, err := ParseActivity(activity(`"` + tt.field + `":` + value))
					if err != nil || public(a.Addressing) != tt.want {
						t.Errorf("public: %t, %v; want %t", public(a.Addressing), err, tt.want)
					}
					if !slices.Contains(a.All(), Public) {
						t.Errorf("named are %q, want Public among them in its full form", a.All())
					}
				})
			}
		}
	}
	for _, other := range []string{"public", "PUBLIC", "as:public", "as:Public#", "http://www.w3.org/ns/activitystreams#Public",
		"https://www.w3.org/ns/activitystreams#public", "https://www.w3.org/ns/activitystreams", "https://peer.example/#Public"} {
		t.Run("PRV-08 not "+other, func(t *testing.T) {
			a, err := ParseActivity(activity(`"to":"` + other + `"`))
			if err != nil || public(a.Addressing) {
				t.Errorf("public: %t, %v; want false", public(a.Addressing), err)
			}
		})
	}
	if public(Addressing{}) {
		t.Error("unaddressed means public, want private")
	}
}

// public reports whether an addressing names everybody in to or in cc.
func public(a Addressing) bool { return slices.Contains(slices.Concat(a.To, a.Cc), Public) }

func TestAddressing(t *testing.T) {
	a, err := ParseActivity(activity(`"to":["https://p/a","https://p/b"],"cc":["https://p/b","https://p/c"],
		"audience":"https://p/d","bto":{"id":"https://p/e"},"bcc":["https://p/a","https://P:443/c"]`))
	if err != nil {
		t.Fatal(err)
	}
	if want := []ID{"https://p/a", "https://p/b", "https://p/c", "https://p/d", "https://p/e"}; !reflect.DeepEqual(a.All(), want) {
		t.Errorf("All() = %q, want %q", a.All(), want)
	}
	if want := []ID{"https://p/a", "https://p/c"}; !slices.Equal(a.Bcc, want) {
		t.Errorf("Bcc = %q, want %q", a.Bcc, want)
	}
}

func TestObjectIsAttributedToOneActor(t *testing.T) {
	const carol, dave ID = "https://peer.example/carol", "https://peer.example/dave"
	tests := []struct {
		name, value string
		want        ID
		refused     bool
	}{
		{name: "absent", value: `null`},
		{name: "text", value: `"https://peer.example/carol"`, want: carol},
		{name: "AS-13 of another origin alone", value: `"https://other.example/eve"`, want: "https://other.example/eve"},
		{name: "AS-13 the first of the object's origin", value: `["https://other.example/eve","https://peer.example/carol","https://peer.example/dave"]`, want: carol},
		{name: "AS-13 a Person before a Group", value: `[{"type":"Group","id":"https://peer.example/dave"},{"type":"Person","id":"https://peer.example/carol"}]`, want: carol},
		{name: "AS-13 no Person of another origin", value: `[{"type":"Person","id":"https://other.example/eve"},{"type":"Group","id":"https://peer.example/dave"}]`, want: dave},
		{name: "AS-13 no Person without id", value: `[{"type":"Person"},"https://peer.example/dave"]`, want: dave},
		{name: "AS-13 none of the origin: the first", value: `["https://other.example/a","https://other.example/b"]`, want: "https://other.example/a"},
		{name: "ORG-03 a number", value: `1`, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, err := ObjectOf(readDoc(t, `{"id":"https://PEER.example/1","type":"Note","attributedTo":`+tt.value+`}`))
			if tt.refused {
				if fault.KindOf(err) != fault.Invalid {
					t.Errorf("ObjectOf = %+v, %v; want invalid", o, err)
				}
				return
			}
			if err != nil || o.AttributedTo != tt.want {
				t.Errorf("ObjectOf = %+v, %v; want it attributed to %q", o, err, tt.want)
			}
		})
	}
}

// ORG-02: a server can speak only for its own authors.
func TestAServerSpeaksForItsOwnAuthorsOnly(t *testing.T) {
	for value, want := range map[string]bool{
		`null`: false, `[]`: false, `"https://peer.example/carol"`: true, `["https://peer.example/carol",{"type":"Group","id":"https://PEER.example/dave"}]`: true,
		`"https://other.example/eve"`: false, `["https://peer.example/carol","https://other.example/eve"]`: false,
	} {
		o, err := ObjectOf(readDoc(t, `{"id":"https://peer.example/1","type":"Note","attributedTo":`+value+`}`))
		if err != nil || o.OwnAuthors() != want {
			t.Errorf("attributed to %s: %t, %v; want %t", value, !want, err, want)
		}
	}
}

func TestObjectOf(t *testing.T) {
	o, err := ObjectOf(readDoc(t, `{"id":"https://peer.example/1","type":["Note","ext:Foo"],"inReplyTo":["https://a.example/2","https://a.example/3"],
		"to":"as:Public","published":"2026-01-01T00:00Z","updated":"2026-01-02T00:00:00Z"}`))
	if err != nil || o.InReplyTo != "https://a.example/2" || o.Type != "Note" || !public(o.Addressing) || o.Published.IsZero() || o.Updated.Day() != 2 {
		t.Errorf("ObjectOf = %+v, %v", o, err)
	}
	for name, doc := range map[string]string{
		"no id":                `{"type":"Note"}`,
		"ORG-22 id null":       `{"type":"Note","id":null}`,
		"no type":              `{"id":"https://peer.example/1"}`,
		"AS-07 type":           `{"id":"https://peer.example/1","type":3}`,
		"AS-07 inReplyTo":      `{"id":"https://peer.example/1","type":"Note","inReplyTo":3}`,
		"AS-07 cc":             `{"id":"https://peer.example/1","type":"Note","cc":3}`,
		"ORG-30 only an href":  `{"type":"Link","href":"https://peer.example/1"}`,
		"nothing at all there": `{}`,
	} {
		if o, err := ObjectOf(readDoc(t, doc)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: ObjectOf = %+v, %v; want invalid", name, o, err)
		}
	}
	if _, err := ObjectOf(nil); fault.KindOf(err) != fault.Invalid {
		t.Errorf("ObjectOf(nil): %v, want invalid", err)
	}
}

// createNote returns an activity of about 1.2 KB.
func createNote(tb testing.TB) []byte {
	d := readDoc(tb, string(readCase(tb, "mastodon/create_note")))
	for _, name := range []string{"contentMap", "replies", "atomUri", "inReplyToAtomUri", "conversation"} {
		delete(d.Sub("object"), name)
	}
	return d.JSON()
}

func BenchmarkParseActivity(b *testing.B) {
	raw := createNote(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseActivity(raw); err != nil {
			b.Fatal(err)
		}
	}
}
