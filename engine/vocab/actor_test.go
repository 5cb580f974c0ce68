package vocab

import (
	"bytes"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestParseActorOfEverySoftware(t *testing.T) {
	tests := []struct {
		name, typ, username, display string
		id, inbox, shared            ID
		approves                     bool
		keys                         []string // the ids of the keys; the id of an RSA key has the prefix "rsa "
	}{
		{"mastodon/actor", "Person", "carol", "Carol :blobcat:", "https://mastodon.example/users/carol",
			"https://mastodon.example/users/carol/inbox", "https://mastodon.example/inbox", false,
			[]string{"rsa https://mastodon.example/users/carol#main-key"}},
		{"mastodon/moved_actor", "Person", "dave", "", "https://mastodon.example/users/dave",
			"https://mastodon.example/users/dave/inbox", "https://mastodon.example/inbox", true,
			[]string{"rsa https://mastodon.example/users/dave#main-key"}},
		{"gotosocial/actor", "Person", "erin", "Erin", "https://gts.example/users/erin",
			"https://gts.example/users/erin/inbox", "", true,
			[]string{"rsa https://gts.example/users/erin/main-key"}},
		{"misskey/actor", "Service", "fumi", "ふみ", "https://misskey.example/users/9abc",
			"https://misskey.example/users/9abc/inbox", "https://misskey.example/inbox", false,
			[]string{"rsa https://misskey.example/users/9abc#main-key"}},
		{"fedify/actor", "Person", "gil", "Gil", "https://fedify.example/ap/users/gil",
			"https://fedify.example/ap/users/gil/inbox", "https://fedify.example/ap/inbox", false,
			[]string{"rsa https://fedify.example/ap/users/gil#main-key", "multikey https://fedify.example/ap/users/gil#multikey-1",
				"multikey https://fedify.example/ap/users/gil#multikey-2"}},
		{"peertube/channel", "Group", "bees", "Bees", "https://peertube.example/video-channels/bees",
			"https://peertube.example/video-channels/bees/inbox", "https://peertube.example/inbox", false,
			[]string{"rsa https://peertube.example/video-channels/bees#main-key"}},
		{"lemmy/community", "Group", "beekeeping", "Beekeeping", "https://lemmy.example/c/beekeeping",
			"https://lemmy.example/c/beekeeping/inbox", "https://lemmy.example/inbox", false,
			[]string{"rsa https://lemmy.example/c/beekeeping#main-key"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw := readCase(t, tt.name)
			a, err := ParseActor(raw)
			if err != nil {
				t.Fatal(err)
			}
			if a.ID != tt.id || a.Type != tt.typ || a.PreferredUsername != tt.username || a.Name != tt.display ||
				a.Inbox != tt.inbox || a.SharedInbox != tt.shared || a.ApprovesFollowers != tt.approves {
				t.Errorf("ParseActor = %+v, want %+v", a, tt)
			}
			if a.Outbox == "" || a.Followers == "" {
				t.Errorf("outbox %q, followers %q; want both", a.Outbox, a.Followers)
			}
			var keys []string
			for _, k := range a.Keys {
				if k.Owner != a.ID || (k.PEM == "") == (k.Multibase == "") {
					t.Errorf("key %+v, want it owned by the actor and in one form", k)
				}
				if k.PEM != "" {
					keys = append(keys, "rsa "+string(k.ID))
				} else {
					keys = append(keys, "multikey "+string(k.ID))
				}
			}
			if !reflect.DeepEqual(keys, tt.keys) {
				t.Errorf("keys %q, want %q", keys, tt.keys)
			}
			if !bytes.Equal(a.Raw, raw) {
				t.Error("Raw is not what was received")
			}
		})
	}
}

func TestActorThatMoved(t *testing.T) {
	a, err := ParseActor(readCase(t, "mastodon/moved_actor"))
	if err != nil || a.MovedTo != "https://new.example/users/dave" || a.AlsoKnownAs != nil {
		t.Errorf("moved to %q, also known as %q, %v", a.MovedTo, a.AlsoKnownAs, err)
	}
	a, err = ParseActor(readCase(t, "mastodon/actor"))
	if want := []ID{"https://old.example/users/carol"}; err != nil || a.MovedTo != "" || !reflect.DeepEqual(a.AlsoKnownAs, want) {
		t.Errorf("moved to %q, also known as %q, %v; want %q", a.MovedTo, a.AlsoKnownAs, err, want)
	}
}

// A GoToSocial key id leads to a stub: a document with only the key and the id of its owner.
func TestKeyOfAStub(t *testing.T) {
	raw := readCase(t, "gotosocial/key_stub")
	if _, err := ParseActor(raw); fault.KindOf(err) != fault.Invalid {
		t.Errorf("ParseActor: %v, want a stub refused", err)
	}
	k := KeyOf(readDoc(t, string(raw)).Sub("publicKey"))
	if k.ID != "https://gts.example/users/erin/main-key" || k.Owner != "https://gts.example/users/erin" || !strings.HasPrefix(k.PEM, "-----BEGIN PUBLIC KEY-----") {
		t.Errorf("KeyOf = %+v", k)
	}
}

// person returns an actor document with the additional members in changes. They are JSON without
// braces.
func person(changes string) []byte {
	return []byte(`{"id":"https://peer.example/carol","type":"Person","inbox":"https://peer.example/carol/inbox",` + changes + `}`)
}

func TestParseActorRefuses(t *testing.T) {
	tests := []struct{ name, doc string }{
		{"AS-08 no object", `[]`},
		{"no id", `{"type":"Person","inbox":"https://peer.example/inbox"}`},
		{"no type", `{"id":"https://peer.example/carol","inbox":"https://peer.example/inbox"}`},
		{"ORG-30 a Note", `{"id":"https://peer.example/carol","type":"Note","inbox":"https://peer.example/inbox"}`},
		{"a Tombstone", `{"id":"https://peer.example/carol","type":"Tombstone"}`},
		{"AS-07 type", `{"id":"https://peer.example/carol","type":1,"inbox":"https://peer.example/inbox"}`},
		{"a stripped actor", `{"id":"https://peer.example/carol","type":"Person","preferredUsername":"carol"}`},
		{"AS-01 inbox null", `{"id":"https://peer.example/carol","type":"Person","inbox":null}`},
		{"AS-07 inbox", `{"id":"https://peer.example/carol","type":"Person","inbox":7}`},
		{"two inboxes", `{"id":"https://peer.example/carol","type":"Person","inbox":["https://peer.example/a","https://peer.example/b"]}`},
		{"NET-12 inbox elsewhere", `{"id":"https://peer.example/carol","type":"Person","inbox":"https://victim.example/inbox"}`},
		{"NET-12 inbox on another port", `{"id":"https://peer.example/carol","type":"Person","inbox":"https://peer.example:8443/inbox"}`},
		{"NET-12 inbox without TLS", `{"id":"https://peer.example/carol","type":"Person","inbox":"http://peer.example/inbox"}`},
		{"everybody as inbox", `{"id":"https://peer.example/carol","type":"Person","inbox":"as:Public"}`},
		{"NET-12 shared inbox elsewhere", string(person(`"endpoints":{"sharedInbox":"https://victim.example/inbox"}`))},
		{"ORG-06 outbox elsewhere", string(person(`"outbox":"https://victim.example/outbox"`))},
		{"followers elsewhere", string(person(`"followers":"https://victim.example/followers"`))},
		{"following elsewhere", string(person(`"following":"https://victim.example/following"`))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if a, err := ParseActor([]byte(tt.doc)); fault.KindOf(err) != fault.Invalid || a != nil {
				t.Errorf("ParseActor = %+v, %v; want invalid", a, err)
			}
		})
	}
}

func TestParseActorTakesEveryForm(t *testing.T) {
	for _, doc := range []string{
		`{"id":"https://peer.example/carol","type":["Person","as:Object"],"inbox":"https://PEER.example:443/inbox"}`,
		`{"id":"https://peer.example/carol","type":["as:Object","Person"],"inbox":["https://peer.example/inbox"]}`,
		`{"@id":"https://peer.example/carol","@type":"as:Person","inbox":{"id":"https://peer.example/inbox","type":"OrderedCollection"}}`,
		string(person(`"endpoints":null,"outbox":null,"publicKey":null,"alsoKnownAs":7,"movedTo":[1],"generator":"https://peer.example/actor"`)),
		string(person(`"endpoints":"https://peer.example/endpoints"`)),
	} {
		a, err := ParseActor([]byte(doc))
		if err != nil || a.Type != "Person" || a.Inbox == "" || a.SharedInbox != "" || a.Keys != nil || a.AlsoKnownAs != nil || a.MovedTo != "" {
			t.Errorf("ParseActor(%s) = %+v, %v", doc, a, err)
		}
	}
	for _, typ := range []string{"Person", "Service", "Application", "Group", "Organization"} {
		if !IsActorType(typ) {
			t.Errorf("IsActorType(%q) = false", typ)
		}
	}
	if IsActorType("Note") || IsActorType("person") || IsActorType("") {
		t.Error("IsActorType took what is no actor")
	}
}

func TestActorNames(t *testing.T) {
	tests := []struct{ name, changes, username, display string }{
		{"plain", `"preferredUsername":"carol","name":"Carol"`, "carol", "Carol"},
		{"dots and hyphens", `"preferredUsername":"carol.c-d_e"`, "carol.c-d_e", ""},
		{"letters beyond ASCII", `"preferredUsername":"ふみ","name":"ふみ"`, "ふみ", "ふみ"},
		{"NAM-04 absent", `"x":1`, "", ""},
		{"NAM-04 empty", `"preferredUsername":"","name":""`, "", ""},
		{"NAM-04 list", `"preferredUsername":["carol"],"name":["Carol"]`, "", ""},
		{"NAM-04 number", `"preferredUsername":7,"name":7`, "", ""},
		{"NAM-04 HTML", `"preferredUsername":"<b>carol","name":"<b>Carol"`, "", "<b>Carol"},
		{"NAM-04 a handle", `"preferredUsername":"carol@other.example"`, "", ""},
		{"NAM-04 a path", `"preferredUsername":"../carol"`, "", ""},
		{"NAM-04 line end", `"preferredUsername":"carol\n","name":" Carol\r\n\tC\u0007 "`, "", "Carol C"},
		{"NAM-04 turned writing direction", `"preferredUsername":"car\u202eol","name":"Car\u202eol\u2066\u200f"`, "", "Carol"},
		{"NAM-04 joiner", `"preferredUsername":"car\u200dol","name":"👩\u200d🚀"`, "", "👩\u200d🚀"},
		{"NAM-04 emoji", `"preferredUsername":"🐝","name":"🐝"`, "", "🐝"},
		{"NAM-04 1 MB", `"preferredUsername":"` + strings.Repeat("a", 1<<20) + `","name":"` + strings.Repeat("ü", 1<<19) + `"`, "", strings.Repeat("ü", 500)},
		{"NAM-04 cut between characters", `"name":"a` + strings.Repeat("ü", 600) + `"`, "", "a" + strings.Repeat("ü", 499)},
		{"AS-06 name in a language", `"nameMap":{"ko":"길","en":"Gil"}`, "", "Gil"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := ParseActor(person(tt.changes))
			if err != nil || a.PreferredUsername != tt.username || a.Name != tt.display || !utf8.ValidString(a.Name) {
				t.Errorf("preferredUsername %q, name %q, %v; want %q, %q", a.PreferredUsername, a.Name, err, tt.username, tt.display)
			}
		})
	}
}

func TestActorKeys(t *testing.T) {
	const carol ID = "https://peer.example/carol"
	var many []string
	for i := range 3 * maxKeys {
		many = append(many, `{"id":"https://peer.example/k`+strconv.Itoa(i)+`","publicKeyPem":"P"}`)
	}
	tests := []struct {
		name, changes string
		want          []ActorKey
	}{
		{"none", `"publicKey":[]`, nil},
		{"AC-04 one", `"publicKey":{"id":"https://peer.example/carol#main-key","owner":"https://peer.example/carol","publicKeyPem":"P"}`,
			[]ActorKey{{ID: carol + "#main-key", Owner: carol, PEM: "P"}}},
		{"AC-04 list", `"publicKey":[{"id":"https://peer.example/k1","publicKeyPem":"P"},{"id":"https://peer.example/k2","publicKeyPem":"Q"}]`,
			[]ActorKey{{ID: "https://peer.example/k1", PEM: "P"}, {ID: "https://peer.example/k2", PEM: "Q"}}},
		{"AC-04 bare id", `"publicKey":"https://peer.example/carol/main-key"`, []ActorKey{{ID: carol + "/main-key"}}},
		{"SIG-03 somebody else's, told as it is", `"publicKey":{"id":"https://peer.example/k","owner":{"id":"https://other.example/dave"},"publicKeyPem":"P"}`,
			[]ActorKey{{ID: "https://peer.example/k", Owner: "https://other.example/dave", PEM: "P"}}},
		{"FE-05 Multikey", `"assertionMethod":[{"id":"https://peer.example/carol#ed25519-key","type":"Multikey","controller":"https://peer.example/carol","publicKeyMultibase":"z6Mk"}]`,
			[]ActorKey{{ID: carol + "#ed25519-key", Owner: carol, Multibase: "z6Mk", Asserts: true}}},
		{"FE-05 one Multikey without a list", `"assertionMethod":{"id":"https://peer.example/k","publicKeyMultibase":"z6Mk"}`,
			[]ActorKey{{ID: "https://peer.example/k", Multibase: "z6Mk", Asserts: true}}},
		{"FE-05 odd entries are ignored", `"assertionMethod":[null,7,true,[],{},"did:key:z6Mk","#key",{"id":4},{"publicKeyMultibase":"z"},{"id":"https://peer.example/k","publicKeyMultibase":"z6Mk"}]`,
			[]ActorKey{{ID: "https://peer.example/k", Multibase: "z6Mk", Asserts: true}}},
		{"odd values are ignored", `"publicKey":{"id":"https://peer.example/k","owner":7,"publicKeyPem":["P"]}`, []ActorKey{{ID: "https://peer.example/k"}}},
		{"SIG-30 keys of other schemes", `"publicKey":{"id":"acct:carol@peer.example","publicKeyPem":"P"}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := ParseActor(person(tt.changes))
			if err != nil || len(a.Keys)+len(tt.want) > 0 && !reflect.DeepEqual(a.Keys, tt.want) {
				t.Errorf("keys %+v, %v; want %+v", a.Keys, err, tt.want)
			}
		})
	}
	t.Run("NET-23 no more than 8", func(t *testing.T) {
		a, err := ParseActor(person(`"publicKey":[` + strings.Join(many, ",") + `]`))
		if err != nil || len(a.Keys) != maxKeys {
			t.Errorf("%d keys, %v; want %d", len(a.Keys), err, maxKeys)
		}
	})
}

func TestWhatAnActorsServerImplements(t *testing.T) {
	tests := []struct {
		name, generator string
		ed25519         bool
		count           int
	}{
		{"MS-11 what Mitra says", `{"type":"Application","implements":[{"name":"RFC-9421: HTTP Message Signatures","href":"https://datatracker.ietf.org/doc/html/rfc9421"},
			{"name":"RFC-9421 signatures using the Ed25519 algorithm","href":"https://datatracker.ietf.org/doc/html/rfc9421#name-eddsa-using-curve-edwards25"}]}`, true, 2},
		{"MS-11 what we say", string(Doc{"implements": Implements()}.JSON()), true, 2},
		{"MS-11 bare URIs", `{"implements":["https://datatracker.ietf.org/doc/html/rfc9421#name-eddsa-using-curve-edwards25"]}`, true, 1},
		{"MS-11 RFC 9421 with RSA only", `{"implements":{"href":"https://datatracker.ietf.org/doc/html/rfc9421"}}`, false, 1},
		{"nothing", `{"type":"Application"}`, false, 0},
		{"odd entries", `{"implements":[null,7,{},{"href":3},{"href":"x"},"x"]}`, false, 0},
		{"an id", `"https://peer.example/actor"`, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := ParseActor(person(`"generator":` + tt.generator))
			if err != nil || a.TakesEd25519() != tt.ed25519 || len(a.Implements) != tt.count {
				t.Errorf("implements %q, %v; want %d, Ed25519: %t", a.Implements, err, tt.count, tt.ed25519)
			}
		})
	}
}
