package vocab

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

func readDoc(t testing.TB, s string) Doc {
	t.Helper()
	d, err := ParseDoc([]byte(s))
	if err != nil {
		t.Fatalf("ParseDoc(%s): %v", s, err)
	}
	return d
}

func TestTypeOfADocument(t *testing.T) {
	tests := []struct {
		name, doc, want string
		refused         bool
	}{
		{name: "AS-01 text", doc: `{"type":"Note"}`, want: "Note"},
		{name: "AS-01 absent", doc: `{}`},
		{name: "AS-01 null", doc: `{"type":null}`},
		{name: "AS-01 empty list", doc: `{"type":[]}`},
		{name: "AS-01 list of one", doc: `{"type":["Note"]}`, want: "Note"},
		{name: "AS-02 an extension second", doc: `{"type":["Note","ext:Foo"]}`, want: "Note"},
		{name: "AS-02 an extension first", doc: `{"type":["http://schema.org/Person","Person"]}`, want: "Person"},
		{name: "AS-02 unknown types are kept", doc: `{"type":"ext:Foo"}`, want: "ext:Foo"},
		{name: "AS-02 the first of two unknown ones", doc: `{"type":["ext:Foo","ext:Bar"]}`, want: "ext:Foo"},
		{name: "AS-02 the first of two known ones", doc: `{"type":["Note","Article"]}`, want: "Note"},
		{name: "AC-08 a base type second", doc: `{"type":["Person","as:Object"]}`, want: "Person"},
		{name: "AC-08 a base type first", doc: `{"type":["Object","Person"]}`, want: "Person"},
		{name: "a base type alone", doc: `{"type":"Activity"}`, want: "Activity"},
		{name: "AS-04 @type", doc: `{"@type":"Note"}`, want: "Note"},
		{name: "AS-04 as:Note", doc: `{"type":"as:Note"}`, want: "Note"},
		{name: "AS-04 full IRI", doc: `{"type":"https://www.w3.org/ns/activitystreams#Note"}`, want: "Note"},
		{name: "AS-04 list in @type", doc: `{"@type":["as:Note"]}`, want: "Note"},
		{name: "PAR-11 type and @type alike", doc: `{"type":["Note"],"@type":["Note"]}`, want: "Note"},
		{name: "PAR-11 type and @type unlike", doc: `{"type":"Note","@type":"Delete"}`, refused: true},
		{name: "PAR-11 unlike lists", doc: `{"type":["Note"],"@type":["Delete"]}`, refused: true},
		{name: "PAR-11 text and list", doc: `{"type":"Note","@type":["Note"]}`, refused: true},
		{name: "PAR-11 unlike objects", doc: `{"type":{"a":1},"@type":{"a":2}}`, refused: true},
		{name: "PAR-05 Type is no type", doc: `{"Type":"Note","TYPE":"Note"}`},
		{name: "AS-07 number", doc: `{"type":16}`, refused: true},
		{name: "AS-07 truth value", doc: `{"type":true}`, refused: true},
		{name: "AS-07 object", doc: `{"type":{"id":"as:Note"}}`, refused: true},
		{name: "AS-07 number in a list", doc: `{"type":["Note",16]}`, refused: true},
		{name: "nested list", doc: `{"type":[["Note"]]}`, refused: true},
		{name: "empty", doc: `{"type":""}`, refused: true},
		{name: "prefix alone", doc: `{"type":"as:"}`},
		{name: "PAR-18 over 255 bytes", doc: `{"type":"` + strings.Repeat("a", 256) + `"}`, refused: true},
		{name: "a prefix", doc: `{"type":"lemmy:Foo-2_b.c~d"}`, want: "lemmy:Foo-2_b.c~d"},
		{name: "an IRI", doc: `{"type":"https://[2001:db8::1]:80/ns/%C3%A9?a=(b)&c='d'*+,;!$@#Foo"}`, want: "https://[2001:db8::1]:80/ns/%C3%A9?a=(b)&c='d'*+,;!$@#Foo"},
		{name: "letters of all scripts", doc: `{"type":"Größe投稿पोस्ट٣"}`, want: "Größe投稿पोस्ट٣"},
		{name: "a type that CheckBounds refuses, stored before it did", doc: `{"type":["Note","Li\u2028 ke"]}`, want: "Note"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readDoc(t, tt.doc).Type()
			if got != tt.want || tt.refused != (fault.KindOf(err) == fault.Invalid) || tt.refused != (err != nil) {
				t.Errorf("Type of %.60s = %q, %v; want %q, refused: %t", tt.doc, got, err, tt.want, tt.refused)
			}
		})
	}
}

func TestIDOfADocument(t *testing.T) {
	const id = "https://peer.example/1"
	tests := []struct {
		name, doc string
		want      ID
		refused   bool
	}{
		{name: "AS-01 text", doc: `{"id":"` + id + `"}`, want: id},
		{name: "AS-01 absent", doc: `{}`},
		{name: "AS-01 null", doc: `{"id":null}`},
		{name: "AS-04 @id", doc: `{"@id":"` + id + `"}`, want: id},
		{name: "AS-04 id null beside @id", doc: `{"id":null,"@id":"` + id + `"}`, want: id},
		{name: "PAR-11 id and @id alike", doc: `{"id":"` + id + `","@id":"` + id + `"}`, want: id},
		{name: "PAR-11 id and @id unlike", doc: `{"id":"` + id + `","@id":"https://peer.example/2"}`, refused: true},
		{name: "PAR-11 lists in both", doc: `{"id":["` + id + `"],"@id":["` + id + `"]}`, refused: true},
		{name: "PAR-11 objects in both", doc: `{"id":{},"@id":{}}`, refused: true},
		{name: "PAR-05 ID is no id", doc: `{"ID":"` + id + `","Id":"` + id + `"}`},
		{name: "AS-07 number", doc: `{"id":4}`, refused: true},
		{name: "AS-07 truth value", doc: `{"id":false}`, refused: true},
		{name: "ORG-22 list", doc: `{"id":["` + id + `"]}`, refused: true},
		{name: "ORG-22 empty, which is none", doc: `{"id":""}`},
		{name: "ORG-22 empty beside @id", doc: `{"id":"","@id":"` + id + `"}`, refused: true},
		{name: "relative", doc: `{"id":"/1"}`, refused: true},
		{name: "AS-05 short form of Public", doc: `{"id":"as:Public"}`, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := readDoc(t, tt.doc).ID()
			if got != tt.want || tt.refused != (fault.KindOf(err) == fault.Invalid) || tt.refused != (err != nil) {
				t.Errorf("ID of %s = %q, %v; want %q, refused: %t", tt.doc, got, err, tt.want, tt.refused)
			}
		})
	}
}

func TestRefsTakeEveryForm(t *testing.T) {
	const carol, dave ID = "https://peer.example/carol", "https://peer.example/dave"
	tests := []struct {
		name, value string
		ids         []ID // "" stands for an embedded object that has no id
		refused     bool
	}{
		{name: "AS-01 null", value: `null`},
		{name: "AS-01 empty list", value: `[]`},
		{name: "AS-01 list of null", value: `[null]`},
		{name: "AS-01 text", value: `"` + string(carol) + `"`, ids: []ID{carol}},
		{name: "AS-01 object", value: `{"id":"` + string(carol) + `"}`, ids: []ID{carol}},
		{name: "AS-01 list of both", value: `["` + string(carol) + `",{"id":"` + string(dave) + `"}]`, ids: []ID{carol, dave}},
		{name: "object without id", value: `{"type":"Tombstone"}`, ids: []ID{""}},
		{name: "AS-12 Link", value: `{"type":"Link","href":"` + string(carol) + `"}`, ids: []ID{carol}},
		{name: "AS-12 Link without type", value: `{"href":"` + string(carol) + `"}`, ids: []ID{carol}},
		{name: "AS-12 Link with a relative href", value: `{"type":"Link","href":"/carol"}`, refused: true},
		{name: "AS-14 Mention without name", value: `{"type":"Mention","href":"` + string(carol) + `"}`, ids: []ID{carol}},
		{name: "ORG-30 href gives a Note no id", value: `{"type":"Note","href":"` + string(carol) + `"}`, ids: []ID{""}},
		{name: "ORG-30 href gives a Tombstone no id", value: `{"type":"Tombstone","href":"` + string(carol) + `"}`, ids: []ID{""}},
		{name: "AS-05 Public", value: `"as:Public"`, ids: []ID{Public}},
		{name: "AS-07 number", value: `23`, refused: true},
		{name: "AS-07 truth value", value: `true`, refused: true},
		{name: "AS-07 number in a list", value: `["` + string(carol) + `",1]`, refused: true},
		{name: "AS-07 number as embedded id", value: `{"id":4}`, refused: true},
		{name: "nested list", value: `[["` + string(carol) + `"]]`, refused: true},
		{name: "relative", value: `"/carol"`, refused: true},
		{name: "AS-01 empty text, which is nothing", value: `""`},
		{name: "AS-01 list of an empty text", value: `["","` + string(carol) + `"]`, ids: []ID{carol}},
		{name: "object with an empty id", value: `{"id":"","type":"Follow"}`, ids: []ID{""}},
		{name: "AS-12 Link with an empty id", value: `{"id":"","type":"Link","href":"` + string(carol) + `"}`, ids: []ID{carol}},
		{name: "PAR-11 contradiction", value: `{"id":"` + string(carol) + `","@id":"` + string(dave) + `"}`, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := readDoc(t, `{"object":`+tt.value+`}`)
			refs, err := d.Refs("object")
			if tt.refused != (fault.KindOf(err) == fault.Invalid) || tt.refused != (err != nil) {
				t.Fatalf("Refs of %s: %v; want refused: %t", tt.value, err, tt.refused)
			}
			var ids []ID
			for _, r := range refs {
				ids = append(ids, r.ID)
			}
			if !reflect.DeepEqual(ids, tt.ids) {
				t.Errorf("Refs of %s = %q, want %q", tt.value, ids, tt.ids)
			}
			one, err := d.Ref("object")
			if several := len(tt.ids) > 1; (several || tt.refused) != (err != nil) {
				t.Errorf("Ref of %s = %v, %v; want refused: %t", tt.value, one, err, several || tt.refused)
			}
			if len(tt.ids) == 0 != one.IsZero() && !tt.refused && err == nil {
				t.Errorf("Ref of %s = %v; want zero: %t", tt.value, one, len(tt.ids) == 0)
			}
		})
	}
}

func TestRefusalPointsToTheProperty(t *testing.T) {
	_, err := readDoc(t, `{"object":23}`).Refs("object")
	if e := fault.Of(err); e == nil || e.Pointer != "/object" {
		t.Errorf("Refs: %+v, want a pointer to /object", e)
	}
}

func TestTypeOfARef(t *testing.T) {
	for doc, want := range map[string]string{
		`{"object":{"type":"Note"}}`:               "Note",
		`{"object":"https://peer.example/1"}`:      "",
		`{"object":{"type":7}}`:                    "",
		`{"object":{"id":"https://peer.example"}}`: "",
	} {
		r, err := readDoc(t, doc).Ref("object")
		if err != nil || r.Type() != want {
			t.Errorf("%s: type %q, %v; want %q", doc, r.Type(), err, want)
		}
	}
}

func TestIDsPassOverWhatCannotBeUsed(t *testing.T) {
	const carol, dave ID = "https://peer.example/carol", "https://peer.example/dave"
	d := readDoc(t, `{"to":["https://peer.example/carol","did:key:z6Mk","acct:dave@peer.example","",null,{"name":"nobody"},
		{"id":"https://peer.example/dave"},"https://peer.example/carol","Public",{"id":"as:Public"}]}`)
	ids, err := d.IDs("to")
	if want := []ID{carol, dave, Public}; err != nil || !reflect.DeepEqual(ids, want) {
		t.Errorf("IDs = %q, %v; want %q", ids, err, want)
	}
	for _, bad := range []string{`4`, `true`, `[4]`, `[["https://peer.example/carol"]]`} {
		if ids, err := readDoc(t, `{"to":`+bad+`}`).IDs("to"); fault.KindOf(err) != fault.Invalid {
			t.Errorf("IDs of %s = %q, %v; want invalid", bad, ids, err)
		}
	}
}

func TestPlainReadsIgnoreOtherForms(t *testing.T) {
	d := readDoc(t, `{"name":{"en":"a"},"content":42,"sensitive":"true","endpoints":[{"sharedInbox":"x"}],
		"tag":{"type":"Hashtag"},"attachment":[1,{"type":"Image"},null,"x",{"type":"Link"}],"icon":[{},{}]}`)
	if d.Text("name") != "" || d.Text("content") != "" || d.Text("absent") != "" || d.Flag("sensitive") || d.Flag("absent") {
		t.Error("Text or Flag read another form, want nothing")
	}
	if d.Sub("endpoints").Text("sharedInbox") != "x" || d.Sub("icon") != nil || d.Sub("content") != nil || d.Sub("absent") != nil {
		t.Error("Sub: want the only object and nothing else")
	}
	if len(d.Subs("tag")) != 1 || len(d.Subs("attachment")) != 2 || d.Subs("absent") != nil {
		t.Error("AS-14 Subs: want single objects and those in lists")
	}
}

func TestWordsInSeveralLanguages(t *testing.T) {
	tests := []struct{ name, doc, want string }{
		{"AS-06 plain", `{"name":"a"}`, "a"},
		{"AS-06 plain wins", `{"name":"a","nameMap":{"en":"b"}}`, "a"},
		{"AS-06 map when plain is absent", `{"nameMap":{"fr":"c","en":"b"}}`, "b"},
		{"AS-06 map when plain is null", `{"name":null,"nameMap":{"fr":"c"}}`, "c"},
		{"AS-06 an empty plain one is still one", `{"name":"","nameMap":{"fr":"c"}}`, ""},
		{"AS-06 text for a map", `{"nameMap":"a"}`, ""},
		{"AS-06 map for a text", `{"name":{"en":"a"}}`, ""},
		{"AS-06 malformed tags are passed over", `{"nameMap":{"":"a","e n":"b","en_GB":"c","en-":"d","toolonglanguage":"e","fr-Latn-CA":"f"}}`, "f"},
		{"AS-06 with malformed tags alone there are no words", `{"nameMap":{"en/us":"a"}}`, ""},
		{"AS-06 malformed values are passed over", `{"nameMap":{"de":7,"en":["b"],"fr":"c"}}`, "c"},
		{"neither", `{}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := readDoc(t, tt.doc).Words("name"); got != tt.want {
				t.Errorf("Words of %s = %q, want %q", tt.doc, got, tt.want)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return v.UTC()
	}
	tests := []struct {
		name, text string
		want       time.Time
	}{
		{"AS-10 RFC 3339", "2026-01-02T03:04:05Z", at("2026-01-02T03:04:05Z")},
		{"AS-10 without seconds", "2026-01-02T03:04Z", at("2026-01-02T03:04:00Z")},
		{"AS-10 without seconds, with offset", "2026-01-02T03:04+02:00", at("2026-01-02T01:04:00Z")},
		{"AS-10 offset", "2026-01-02T03:04:05-08:00", at("2026-01-02T11:04:05Z")},
		{"AS-10 unknown offset", "2026-01-02T03:04:05-00:00", at("2026-01-02T03:04:05Z")},
		{"AS-10 nanoseconds", "2026-01-02T03:04:05.123456789Z", at("2026-01-02T03:04:05.123456789Z")},
		{"AS-10 comma", "2026-01-02T03:04:05,5Z", at("2026-01-02T03:04:05.5Z")},
		{"AS-10 small letters", "2026-01-02t03:04:05z", at("2026-01-02T03:04:05Z")},
		{"AS-10 no offset is UTC", "2026-01-02T03:04:05", at("2026-01-02T03:04:05Z")},
		{"AS-10 leap second", "2016-12-31T23:59:60Z", at("2016-12-31T23:59:59Z")},
		{"AS-10 leap second elsewhere", "2017-01-01T00:59:60.5+01:00", at("2016-12-31T23:59:59.5Z")},
		{"AS-10 1970", "1970-01-01T00:00:00Z", at("1970-01-01T00:00:00Z")},
		{"AS-10 year 9999", "9999-12-31T23:59:59Z", at("9999-12-31T23:59:59Z")},
		{"year 9999 that is 10000 in UTC", "9999-12-31T23:59:59-01:00", time.Time{}},
		{"year 1 that is 0 in UTC", "0001-01-01T00:00:00+01:00", time.Time{}},
		{"year 0", "0000-01-01T00:00:00Z", time.Time{}},
		{"year 10000", "10000-01-01T00:00:00Z", time.Time{}},
		{"minute 60", "2026-01-02T10:60:00Z", time.Time{}},
		{"minute 60 without seconds", "2026-01-02T10:60Z", time.Time{}},
		{"offset of 61 minutes", "2026-01-02T10:00:00+01:61", time.Time{}},
		{"second 61", "2026-01-02T10:00:61Z", time.Time{}},
		{"30 February", "2026-02-30T10:00:00Z", time.Time{}},
		{"date only", "2026-01-02", time.Time{}},
		{"words", "yesterday", time.Time{}},
		{"only a leap second", ":60", time.Time{}},
		{"empty", "", time.Time{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Doc{"published": tt.text}.Time("published")
			if !got.Equal(tt.want) || got.Location() != time.UTC {
				t.Errorf("Time of %q = %v, want %v", tt.text, got, tt.want)
			}
			if _, err := got.MarshalJSON(); err != nil {
				t.Errorf("Time of %q cannot be written: %v", tt.text, err)
			}
		})
	}
	if got := readDoc(t, `{"published":1767225600}`).Time("published"); !got.IsZero() {
		t.Errorf("Time of a number = %v, want none", got)
	}
}

func TestHiddenRecipientsAreTakenOut(t *testing.T) {
	tests := []struct{ name, doc, want string }{
		{"none", `{"cc":["a"],"to":"b"}`, `{"cc":["a"],"to":"b"}`},
		{"of the document", `{"bcc":["a"],"bto":"b","to":"c"}`, `{"to":"c"}`},
		{"of the object", `{"object":{"bto":"b","id":"o"}}`, `{"object":{"id":"o"}}`},
		{"of an object in a list", `{"object":[{"bcc":"b","id":"o"},"p"]}`, `{"object":[{"id":"o"},"p"]}`},
		{"of a written-out name", `{"\u0062to":"b","to":"c"}`, `{"to":"c"}`},
		{"empty", `{"bto":null}`, `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := ParseDoc([]byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			before := string(d.JSON())
			if got := string(d.WithoutHidden().JSON()); got != tt.want {
				t.Errorf("WithoutHidden = %s, want %s", got, tt.want)
			}
			if after := string(d.JSON()); after != before {
				t.Errorf("the document was changed to %s", after)
			}
		})
	}
}
