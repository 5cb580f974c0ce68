package inbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// IN-18, IN-20: the engine accepts activities of one actor about one object. It refuses activities
// with several actors or objects, with a pointer to the wrong property. It accepts an activity
// without an object if its type needs none.
func TestShapesOfActivities(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	needing := []string{"Create", "Update", "Delete", "Follow", "Add", "Remove", "Like", "Dislike", "Announce", "Undo", "Accept", "Reject"}
	shapes := []struct{ name, fields, pointer string }{
		{"two objects", `"object":["p:/notes/1","p:/notes/2"]`, "/object"},
		{"two embedded objects", `"object":[{"id":"p:/notes/1","type":"Note"},{"id":"p:/notes/2","type":"Note"}]`, "/object"},
		{"a list in a list", `"object":[["p:/notes/1"]]`, "/object"},
		{"a number", `"object":1`, "/object"},
		{"no object", `"x":1`, "/object"},
		{"nothing", `"object":null`, "/object"},
		{"an empty list", `"object":[]`, "/object"},
	}
	for _, kind := range needing {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			for _, tt := range shapes {
				refused(t, s, tt.name, tt.pointer, fmt.Sprintf(`{"id":"p:/acts/1","type":"%s","actor":"p:/carol","target":"p:/carol/featured",%s}`, kind, tt.fields))
			}
			for _, actors := range severalActors {
				refused(t, s, "actors "+actors, "/actor", fmt.Sprintf(`{"id":"p:/acts/1","type":"%s","actor":%s,"target":"p:/carol/featured","object":"p:/notes/1"}`, kind, actors))
			}
		})
	}
	t.Run("any type", func(t *testing.T) {
		s := stage.Scene(t)
		for name, tt := range map[string]struct{ pointer, body string }{
			"two actors":                      {"/actor", `{"id":"p:/acts/1","type":"Listen","actor":["p:/carol","p:/dave"],"object":"p:/songs/1"}`},
			"no actor":                        {"/actor", `{"id":"p:/acts/1","type":"Listen","object":"p:/songs/1"}`},
			"an Undo of a Like of two things": {"/object/object", `{"id":"p:/acts/1","type":"Undo","actor":"p:/carol","object":{"type":"Like","object":["p:/1","p:/2"]}}`},
			"an Undo of an Add to two things": {"/object/target", `{"id":"p:/acts/1","type":"Undo","actor":"p:/carol","object":{"type":"Add","object":"p:/1","target":["p:/1","p:/2"]}}`},
			"two targets":                     {"/target", `{"id":"p:/acts/1","type":"Listen","actor":"p:/carol","target":["p:/1","p:/2"]}`},
			"transient":                       {"/id", `{"type":"Listen","actor":"p:/carol","object":"p:/songs/1"}`},
			"id is null":                      {"/id", `{"id":null,"type":"Listen","actor":"p:/carol"}`},
			"without type":                    {"/type", `{"id":"p:/acts/1","actor":"p:/carol"}`},
		} {
			refused(t, s, name, tt.pointer, tt.body)
		}
		for n, tt := range []struct{ kind, fields string }{
			{"Arrive", `"type":"Arrive","location":"p:/places/1"`},
			{"Travel", `"type":"Travel","object":[]`},
			{"Question", `"type":"Question","oneOf":[{"name":"red"}]`},
			{"Travel", `"type":["Travel","IntransitiveActivity"]`},
		} {
			want := []string{fmt.Sprintf("+ activity inbound %s p:/acts/%d", tt.kind, n), fmt.Sprintf("+ event %s.received p:/acts/%d by stranger p:/carol", strings.ToLower(tt.kind), n)}
			expect(t, s, want, accepted, func() error {
				return s.Send("p:/carol", mine, fmt.Sprintf(`{"id":"p:/acts/%d","actor":"p:/carol",%s}`, n, tt.fields))
			})
		}
	})
}

// severalActors holds values of the property actor that name the sender twice or name other
// actors, too.
var severalActors = []string{
	`["p:/carol","p:/dave"]`,
	`["p:/dave","p:/carol"]`,
	`["q:/mallory","p:/carol"]`,
	`["us:/alice","p:/carol"]`,
	`["p:/carol","p:/carol"]`,
	`["p:/carol",{"id":"p:/dave","type":"Person"}]`,
	`[{"id":"p:/carol","type":"Person"},{"type":"Person"}]`,
}

// A list of one value has the meaning of that value, because JSON-LD does not distinguish the two.
func TestAListOfOneIsThatOne(t *testing.T) {
	s := newScene(t)
	expect(t, s, listened, accepted, func() error {
		return s.Send("p:/carol", mine, `{"id":"p:/listens/1","type":["Listen"],"actor":["p:/carol"],"object":["p:/songs/1"]}`)
	})
}

// If the engine refuses an activity for its two objects, it records nothing. The sender can send
// an activity for one of the objects under the same id.
func TestWhatIsRefusedForSeveralObjectsMayComeAsSeveral(t *testing.T) {
	s := newScene(t)
	refused(t, s, "two objects", "/object", `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":["us:/alice/objects/1","us:/alice/objects/2"]}`)
	s.Posts("us:/alice/objects/1", string(vocab.Public))
	changes := s.Changes(func() {
		s.MustSend("p:/carol", mine, `{"id":"p:/likes/1","type":"Like","actor":"p:/carol","object":"us:/alice/objects/1"}`)
	})
	if !slices.Contains(changes, "+ reaction p:/carol Like us:/alice/objects/1 p:/likes/1") {
		t.Errorf("the Like of one object made %q", changes)
	}
}

func refused(t *testing.T, s *peertest.Scene, what, pointer, body string) {
	t.Helper()
	err := s.Send("p:/carol", mine, body)
	if e := fault.Of(err); e == nil || e.Kind != fault.Invalid || e.Pointer != pointer {
		t.Errorf("%s: err = %v, want one that points to %s", what, err, pointer)
	}
}

// The database finds types and objects in one form, however a peer writes them.
func TestTypesAreStoredInPlainForm(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	s.MustSend("p:/carol", shared, `{"id":"p:/creates/1","@type":"as:Create","actor":"p:/carol","to":"as:Public","object":[{"id":"p:/notes/1",
		"@type":"https://www.w3.org/ns/activitystreams#Note","attributedTo":"p:/carol","to":"as:Public","content":"hi","tag":{"@type":"as:Hashtag","name":"#bees"}}]}`)
	got := s.Column(t, s.Alice, `SELECT concat_ws(' ', a.raw ->> 'type', a.raw -> 'object' ->> 'type', o.raw ->> 'type', jsonb_path_query_array(o.raw, '$.tag[*] ? (@.type == "Hashtag").name'))
		FROM activities a JOIN objects o ON o.uri = a.object_uri`)
	if want := []string{`Create Note Note ["#bees"]`}; !slices.Equal(got, want) {
		t.Errorf("it is stored as %q, want %q", got, want)
	}
}
