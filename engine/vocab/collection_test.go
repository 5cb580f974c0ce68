package vocab

import (
	"testing"
)

func TestCollectionsAsTheyAreServed(t *testing.T) {
	const id ID = "https://lightweb.example/users/alice/followers"
	tests := []struct {
		name string
		doc  Doc
		want string
	}{
		{"a collection", Collection{ID: id, Total: 3, First: id + "?page=true"}.Doc(),
			`{"@context":"https://www.w3.org/ns/activitystreams","first":"` + string(id) + `?page=true","id":"` + string(id) + `","totalItems":3,"type":"OrderedCollection"}`},
		{"an empty one", Collection{ID: id}.Doc(),
			`{"@context":"https://www.w3.org/ns/activitystreams","id":"` + string(id) + `","totalItems":0,"type":"OrderedCollection"}`},
		{"PRV-04 one that tells nothing", Collection{ID: id, Total: -1}.Doc(),
			`{"@context":"https://www.w3.org/ns/activitystreams","id":"` + string(id) + `","type":"OrderedCollection"}`},
		{"a page", without("@context", Page{ID: id + "?page=1", PartOf: id, Next: id + "?page=2", Items: []any{"https://peer.example/carol"}}.Doc()),
			`{"id":"` + string(id) + `?page=1","next":"` + string(id) + `?page=2","orderedItems":["https://peer.example/carol"],"partOf":"` + string(id) + `","type":"OrderedCollectionPage"}`},
		{"the last page, empty", without("@context", Page{ID: id + "?page=1", PartOf: id}.Doc()),
			`{"id":"` + string(id) + `?page=1","partOf":"` + string(id) + `","type":"OrderedCollectionPage"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(tt.doc.JSON()); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if _, err := ParseDoc(tt.doc.JSON()); err != nil {
				t.Errorf("it cannot be read again: %v", err)
			}
		})
	}
}

func without(name string, d Doc) Doc {
	delete(d, name)
	return d
}

// OB-08: the ActivityStreams context comes first. No context is a URL of this project.
func TestContextsBeginWithActivityStreams(t *testing.T) {
	known := map[any]bool{ContextAS: true, contextSecurity: true, contextDID: true, contextMultikey: true, contextProof: true}
	for name, context := range map[string][]any{"Context": Context(), "ActivityContext": ActivityContext(), "ActorContext": ActorContext()} {
		if context[0] != ContextAS {
			t.Errorf("%s begins with %v", name, context[0])
		}
		for _, c := range context {
			if s, ok := c.(string); ok && !known[s] {
				t.Errorf("%s names %q, which a peer would have to fetch", name, s)
			}
		}
		if _, err := ParseDoc(Doc{"@context": context}.JSON()); err != nil {
			t.Errorf("%s cannot be read again: %v", name, err)
		}
	}
}
