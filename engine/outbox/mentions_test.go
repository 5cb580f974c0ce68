package outbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// wire holds parts of a post as it is sent.
type wire struct {
	to         []string // the recipients in to and cc
	mentions   []string // the actors in its tags
	hashtags   []string
	links      []string // the addresses in its content
	unresolved []string
}

// wire dispatches an action and reads the post from its activity.
func (d *desk) wire(action string, params map[string]any) (w wire, object vocab.ID) {
	d.t.Helper()
	r, err := d.dispatch(action, params)
	if err != nil {
		d.t.Fatalf("%s %v: %v", action, params, err)
	}
	a, err := vocab.ParseActivity(d.activity(r.ActivityID).Raw)
	if err != nil {
		d.t.Fatal(err)
	}
	doc := a.Object.Doc
	w = wire{to: strs(a.All()), unresolved: r.Unresolved}
	if got := strs(vocab.Addressing{To: ids(d.t, doc, "to"), Cc: ids(d.t, doc, "cc")}.All()); !slices.Equal(got, w.to) {
		d.t.Errorf("the %s is for %q, its object for %q", action, w.to, got)
	}
	for _, tag := range doc.Subs("tag") {
		switch kind := tag.Text("type"); kind {
		case "Mention":
			w.mentions = append(w.mentions, tag.Text("href"))
		case "Hashtag":
			w.hashtags = append(w.hashtags, tag.Text("name")+" "+tag.Text("href"))
		}
	}
	for _, part := range strings.Split(doc.Text("content"), `<a href="`)[1:] {
		to, _, _ := strings.Cut(part, `"`)
		w.links = append(w.links, to)
	}
	return w, a.Object.ID
}

func (w wire) want(t *testing.T, name string, want wire) {
	t.Helper()
	if got, want := fmt.Sprintf("%+v", w), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
}

// A public note and a note for followers also go to the actors that their text names. A note for
// certain actors does not go to other actors that its text names.
func TestWhoeverATextNamesIsTold(t *testing.T) {
	t.Parallel()
	d := town(t)
	const text = "hi @Bob@p.example and @bob@P.example, @alice@here.example, @nobody@p.example: https://e.example/a. #Go #go"
	tags := []string{"#Go " + here + "/@alice/tags/go"}
	links := []string{bob, bob, string(me), "https://e.example/a", here + "/@alice/tags/go", here + "/@alice/tags/go"}
	nobody := []string{"@nobody@p.example"}
	for _, c := range []struct {
		name   string
		params map[string]any
		want   wire
	}{
		{"to everybody", map[string]any{}, wire{[]string{public, followers, bob}, []string{bob}, tags, links, nobody}},
		{"to followers", map[string]any{"visibility": "followers"}, wire{[]string{followers, bob}, []string{bob}, tags, links, nobody}},
		{"direct, to whoever it names", map[string]any{"visibility": "direct"}, wire{[]string{bob}, []string{bob}, tags, links, nobody}},
		{"direct, to somebody else", map[string]any{"to": []string{dan}}, wire{[]string{dan}, []string{dan}, tags, links[2:], []string{"@bob@p.example", nobody[0]}}},
		{"direct, to the one it names", map[string]any{"to": []string{bob}}, wire{[]string{bob}, []string{bob}, tags, links, nobody}},
		{"an answer", map[string]any{"inReplyTo": bobsPost}, wire{[]string{public, followers, bob}, []string{bob}, tags, links, nobody}},
	} {
		c.params["content"] = text
		got, _ := d.wire("CreateNote", c.params)
		got.want(t, c.name, c.want)
	}
	got, _ := d.wire("SendMessage", map[string]any{"recipientUri": dan, "content": text})
	got.want(t, "a message", wire{[]string{dan}, []string{dan}, tags, links[2:], []string{"@bob@p.example", nobody[0]}})
	got, _ = d.wire("Reply", map[string]any{"objectId": bobsPost, "content": "ask @dan@q.example"})
	got.want(t, "a reply", wire{[]string{public, followers, bob, dan}, []string{bob, dan}, nil, []string{dan}, nil})
	d.refused("CreateNote", map[string]any{"visibility": "direct", "content": "for @nobody@p.example"}, fault.Unprocessable, "invalid_parameter")
}

// An edit goes to the actors that the new text names, unless the post is private.
func TestNewWordsReachTheActorsThatTheyName(t *testing.T) {
	t.Parallel()
	d := town(t)
	_, note := d.wire("CreateNote", map[string]any{"content": "hi @bob@p.example #one", "tags": []string{"two words"}})
	d.owed()
	got, _ := d.wire("UpdateObject", map[string]any{"objectId": string(note), "content": "hi @dan@q.example #three"})
	got.want(t, "public", wire{[]string{public, followers, bob, dan}, []string{bob, dan}, []string{"#three " + here + "/@alice/tags/three"},
		[]string{dan, here + "/@alice/tags/three"}, nil})
	if to := inboxes(d.owed()); !slices.Contains(to, dan+"/inbox") {
		t.Errorf("the new words go to %q, and not to dan", to)
	}
	got, _ = d.wire("UpdateObject", map[string]any{"objectId": string(note), "tags": []string{"four"}})
	got.want(t, "tags alone", wire{[]string{public, followers, bob, dan}, []string{bob, dan},
		[]string{"#four " + here + "/@alice/tags/four", "#three " + here + "/@alice/tags/three"}, []string{dan, here + "/@alice/tags/three"}, nil})
	_, letter := d.wire("CreateNote", map[string]any{"to": []string{bob}, "content": "hi"})
	d.owed()
	got, _ = d.wire("UpdateObject", map[string]any{"objectId": string(letter), "content": "@bob@p.example, not @dan@q.example"})
	got.want(t, "a letter", wire{[]string{bob}, []string{bob}, nil, []string{bob}, []string{"@dan@q.example"}})
	if to := inboxes(d.owed()); !slices.Equal(to, []string{bob + "/inbox"}) {
		t.Errorf("the new words of a letter go to %q", to)
	}
}

// A text causes at most twenty look-ups. The handle of a blocked actor is not linked. An LLM
// engine can look up only actors that the user knows.
func TestWhatATextNamesIsBounded(t *testing.T) {
	t.Parallel()
	d := town(t)
	var text []string
	for n := range 25 {
		name := fmt.Sprint("p", n)
		d.world.person(t, "r.example", name, true)
		text = append(text, "@"+name+"@r.example")
	}
	d.world.asked = 0
	got, _ := d.wire("CreateNote", map[string]any{"content": strings.Join(text, " ")})
	if len(got.mentions) != 20 || !slices.Equal(got.unresolved, text[20:]) || d.world.asked > 20 {
		t.Errorf("%d are mentioned, %q are not, after %d look-ups", len(got.mentions), got.unresolved, d.world.asked)
	}
	many := "#a " + strings.Repeat("#bb ", 16_000)
	if got, _ = d.wire("CreateNote", map[string]any{"content": many}); len(got.hashtags) != 2 || len(got.links) != 0 {
		t.Errorf("a text of hashtags has %d of them, and %d links", len(got.hashtags), len(got.links))
	}
	d.refused("CreateNote", map[string]any{"content": strings.Repeat(`"`, 60_000)}, fault.Unprocessable, "invalid_parameter")
	d.must("Block", map[string]any{"actorUri": bob})
	got, _ = d.wire("CreateNote", map[string]any{"content": "@bob@p.example @dan@q.example"})
	got.want(t, "a blocked actor", wire{[]string{public, followers, dan}, []string{dan}, nil, []string{dan}, []string{"@bob@p.example"}})

	d.world.person(t, "s.example", "stranger", true)
	params, err := json.Marshal(map[string]any{"content": "@stranger@s.example @dan@q.example"})
	if err != nil {
		t.Fatal(err)
	}
	d.world.asked = 0
	r, err := d.Dispatch(t.Context(), Dispatch{User: d.alice, Token: d.token, Assistant: true, IdempotencyKey: "k", Action: pipeline.Action{Name: "CreateNote", Params: params}})
	if err != nil || !slices.Equal(r.Unresolved, []string{"@stranger@s.example"}) || d.world.asked > 0 {
		t.Errorf("an LLM engine is answered %+v, %v, after %d look-ups", r, err, d.world.asked)
	}
	again, err := d.Dispatch(t.Context(), Dispatch{User: d.alice, Token: d.token, Assistant: true, IdempotencyKey: "k", Action: pipeline.Action{Name: "CreateNote", Params: params}})
	if err != nil || !again.Replayed || !slices.Equal(again.Unresolved, r.Unresolved) {
		t.Errorf("again it is answered %+v, %v", again, err)
	}
}
