package outbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A note names actors and has no visibility. It is for those actors only. A client that speaks
// ActivityPub means nobody else, and a private note that was once shown stays public.
func TestANoteThatNamesActorsAloneIsForThose(t *testing.T) {
	t.Parallel()
	d := town(t)
	erin := string(d.world.person(t, "r.example", "erin", true).ID)
	letter := string(d.world.post("https://p.example/notes/2", bob, string(me)))
	own := string(d.note(map[string]any{"content": "hi"}))
	for _, c := range []struct {
		name   string
		params map[string]any
		to     []string // the note names only these actors, and only they get it
	}{
		{"one", map[string]any{"to": []string{erin}}, []string{erin}},
		{"one by handle", map[string]any{"to": []string{"@erin@r.example"}}, []string{erin}},
		{"two, and herself", map[string]any{"to": []string{erin, string(me), dan}}, []string{erin, dan}},
		{"in cc alone", map[string]any{"cc": []string{erin}}, []string{erin}},
		{"in to and cc", map[string]any{"to": []string{dan}, "cc": []string{erin}}, []string{dan, erin}},
		{"answering another's public post", map[string]any{"to": []string{erin}, "inReplyTo": bobsPost}, []string{erin}},
		{"answering it, its author named too", map[string]any{"to": []string{erin}, "cc": []string{bob}, "inReplyTo": bobsPost}, []string{erin, bob}},
		{"answering a letter", map[string]any{"to": []string{erin}, "inReplyTo": letter}, []string{erin}},
		{"answering her own public post", map[string]any{"cc": []string{erin}, "inReplyTo": own}, []string{erin}},
		{"said to be direct", map[string]any{"to": []string{erin}, "inReplyTo": bobsPost, "visibility": "direct"}, []string{erin}},
	} {
		c.params["content"] = c.name
		a, err := vocab.ParseActivity(d.must("CreateNote", c.params).Raw)
		if err != nil {
			t.Fatal(err)
		}
		for place, to := range map[string]vocab.Addressing{"Create": a.Addressing, "note": {To: ids(t, a.Object.Doc, "to"), Cc: ids(t, a.Object.Doc, "cc")}} {
			if got := strs(to.All()); !slices.Equal(got, c.to) {
				t.Errorf("%s: the %s is for %q, want %q", c.name, place, got, c.to)
			}
		}
		var want []string
		for _, actor := range c.to {
			want = append(want, actor+"/inbox")
		}
		slices.Sort(want)
		if got := inboxes(d.owed()); !slices.Equal(got, want) {
			t.Errorf("%s: it goes to %q, want %q", c.name, got, want)
		}
		if !slices.Contains(c.to, bob) && strings.Contains(string(a.Raw), bob) {
			t.Errorf("%s: bob is named: %s", c.name, a.Raw)
		}
	}
	for _, p := range []map[string]any{{"to": []string{string(me)}}, {"to": []string{string(me)}, "inReplyTo": bobsPost}} {
		p["content"] = "for nobody"
		d.refused("CreateNote", p, fault.Unprocessable, "invalid_parameter")
	}
}

// ActivityPub §5.6: Public has two short forms.
func TestPublicIsNamedInEachOfItsForms(t *testing.T) {
	t.Parallel()
	d := town(t)
	for _, form := range []string{public, "as:Public", "Public"} {
		a, err := vocab.ParseActivity(d.must("CreateNote", map[string]any{"content": "hi", "to": []string{form}}).Raw)
		if err != nil || !slices.Equal(a.To, []vocab.ID{vocab.Public}) {
			t.Errorf("to %q: the Create is for %q (%v), want Public", form, a.To, err)
		}
	}
}
