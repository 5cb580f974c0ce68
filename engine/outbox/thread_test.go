package outbox

import (
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

// A public note names its collection of answers and its thread. The thread is its parent's or a
// new one.
func TestANoteSaysInWhichThreadItIs(t *testing.T) {
	t.Parallel()
	d := town(t)
	const thread = "https://p.example/contexts/7"
	inThread := func(id string, context any) string {
		d.world.mu.Lock()
		defer d.world.mu.Unlock()
		d.world.objects[vocab.ID(id)] = string(vocab.Doc{"id": id, "type": "Note", "attributedTo": bob, "to": public, "context": context}.JSON())
		return id
	}
	own := d.note(map[string]any{"content": "first"})
	for _, tt := range []struct {
		name    string
		params  map[string]any
		replies bool
		context string // "own" stands for a thread of its own
	}{
		{"public", map[string]any{}, true, "own"},
		{"unlisted", map[string]any{"visibility": "unlisted"}, true, "own"},
		{"for followers", map[string]any{"visibility": "followers"}, false, ""},
		{"direct", map[string]any{"to": []string{bob}}, false, ""},
		{"an answer to one in no thread", map[string]any{"inReplyTo": bobsPost}, true, ""},
		{"an answer to one in a thread", map[string]any{"inReplyTo": inThread("https://p.example/notes/t1", thread)}, true, thread},
		{"an answer to one in a thread that is embedded", map[string]any{"inReplyTo": inThread("https://p.example/notes/t2", vocab.Doc{"id": thread, "type": "Collection"})}, true, thread},
		{"an answer to one in several", map[string]any{"inReplyTo": inThread("https://p.example/notes/t3", []any{thread, thread + "8"})}, true, ""},
		{"an answer to one in no thread that can be asked for", map[string]any{"inReplyTo": inThread("https://p.example/notes/t4", "tag:p.example,2026:1")}, true, ""},
		{"an answer for one", map[string]any{"inReplyTo": inThread("https://p.example/notes/t5", thread), "visibility": "direct"}, false, thread},
		{"an answer to her own", map[string]any{"inReplyTo": own}, true, string(own) + "/context"},
	} {
		tt.params["content"] = tt.name
		a := d.must("CreateNote", tt.params)
		note := mustDoc(t, a.Raw).Sub("object")
		replies, context := "", tt.context
		if tt.replies {
			replies = string(a.Object) + "/replies"
		}
		if context == "own" {
			context = string(a.Object) + "/context"
		}
		if note.Text("replies") != replies || note.Text("context") != context {
			t.Errorf("%s: replies %q, context %q; want %q and %q", tt.name, note["replies"], note["context"], replies, context)
		}
		d.must("UpdateObject", map[string]any{"objectId": string(a.Object), "content": "changed"})
		if now := mustDoc(t, d.object(a.Object).Raw); now.Text("replies") != replies || now.Text("context") != context {
			t.Errorf("%s: after an Update, replies %q, context %q", tt.name, now["replies"], now["context"])
		}
	}
}
