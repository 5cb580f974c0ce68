package outbox

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// neighbour creates another user of alice's server. The user follows alice.
func (d *desk) neighbour(name string) *vocab.Actor {
	d.t.Helper()
	a, err := d.Local.Actor(d.user(name))
	if err != nil {
		d.t.Fatal(err)
	}
	d.befriend(a, "accepted")
	return a
}

// A local post goes to followers on this server and to the users of this server that it names. So
// do its edits and its deletion. No other server gets them, even if the text names an actor there.
func TestALocalPostStaysOnItsServer(t *testing.T) {
	t.Parallel()
	d := town(t)
	nora, olaf := d.neighbour("nora"), d.user("olaf")
	d.befriend(d.world.person(t, "far.example", "fred", true), "accepted")
	want := []string{string(nora.Inbox), string(d.Local.Inbox(olaf))}
	for action, params := range map[string]map[string]any{
		"CreateNote":    {"content": "hi @bob@p.example and @olaf@here.example", "visibility": "local"},
		"CreateArticle": {"title": "Hi", "content": "hi @olaf@here.example", "to": []string{here + "/#Public"}},
		"CreateObject":  {"type": "Product", "title": "Hi", "content": "hi @olaf@here.example", "visibility": "local"},
		"Reply":         {"objectId": bobsPost, "content": "hi @olaf@here.example", "visibility": "local"},
	} {
		r, err := d.dispatch(action, params)
		if err != nil {
			t.Fatalf("%s: %v", action, err)
		}
		raw := string(d.activity(r.ActivityID).Raw)
		if strings.Contains(raw, string(vocab.Public)) || strings.Contains(raw, string(me)+"/followers") {
			t.Errorf("%s is for more than this server: %s", action, raw)
		}
		if got := inboxes(d.owed()); !slices.Equal(got, want) {
			t.Errorf("%s is owed to %q, want %q", action, got, want)
		}
		d.must("UpdateObject", map[string]any{"objectId": string(r.ObjectID), "content": "now @bob@p.example, @fred@far.example and @olaf@here.example"})
		if got := inboxes(d.owed()); !slices.Equal(got, want) {
			t.Errorf("the edit after %s is owed to %q, want %q", action, got, want)
		}
		if post := d.object(r.ObjectID); strings.Contains(string(post.Raw), string(vocab.Public)) {
			t.Errorf("the edit after %s widens it: %s", action, post.Raw)
		}
		d.must("DeleteObject", map[string]any{"objectId": string(r.ObjectID)})
		if got := inboxes(d.owed()); !slices.Equal(got, want) {
			t.Errorf("the Delete after %s is owed to %q, want %q", action, got, want)
		}
	}
}

// A local post cannot have recipients on other servers, cannot be boosted, and is in no public
// collection. An answer to a local post is local, too.
func TestALocalPostIsPassedOnToNobody(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.neighbour("nora")
	post := string(d.note(map[string]any{"content": "hi", "visibility": "local"}))
	d.refused("CreateNote", map[string]any{"content": "hi", "visibility": "local", "to": []string{bob}}, fault.Unprocessable, "not_local")
	d.refused("CreateNote", map[string]any{"content": "hi", "to": []string{here + "/#Public"}, "cc": []string{bob}}, fault.Unprocessable, "not_local")
	d.refused("CreateNote", map[string]any{"content": "hi", "visibility": "local", "to": []string{string(vocab.Public)}}, fault.Unprocessable, "invalid_parameter")
	d.refused("Boost", map[string]any{"objectId": post}, fault.Forbidden, "not_public")
	d.refused("AddToStream", map[string]any{"objectId": post, "streamId": featured}, fault.Forbidden, "not_public")
	reply, err := d.dispatch("Reply", map[string]any{"objectId": post, "content": "indeed"})
	if err != nil {
		t.Fatal(err)
	}
	if to := d.activity(reply.ActivityID).Raw; !strings.Contains(string(to), here+`/#Public`) {
		t.Errorf("the answer is for others: %s", to)
	}
}

// "Local" in a post of another server means everybody on that server. An answer to such a post is
// for the post's author and the actors that the answer's text names. It is not for everybody on
// this server.
func TestAnAnswerToALocalPostOfAnotherServerIsDirect(t *testing.T) {
	t.Parallel()
	d := town(t)
	olaf := d.user("olaf")
	post := string(d.world.post("https://p.example/notes/local", bob, "https://p.example/#Public"))
	for _, tt := range []struct {
		action string
		params map[string]any
		to     []any
		owed   []string
	}{
		{"Reply", map[string]any{"objectId": post, "content": "indeed"}, []any{bob}, []string{string(d.world.actors[bob].Inbox)}},
		{"CreateNote", map[string]any{"inReplyTo": post, "content": "indeed, @olaf@here.example"}, []any{bob, string(d.Local.ID(olaf))},
			[]string{string(d.world.actors[bob].Inbox), string(d.Local.Inbox(olaf))}},
	} {
		r, err := d.dispatch(tt.action, tt.params)
		if err != nil {
			t.Fatalf("%s: %v", tt.action, err)
		}
		if answer := mustDoc(t, d.object(r.ObjectID).Raw); !reflect.DeepEqual(answer["to"], tt.to) || answer["cc"] != nil {
			t.Errorf("%s is to %v, cc %v; want to %v", tt.action, answer["to"], answer["cc"], tt.to)
		}
		if got := slices.Sorted(slices.Values(inboxes(d.owed()))); !slices.Equal(got, slices.Sorted(slices.Values(tt.owed))) {
			t.Errorf("%s is owed to %q, want %q", tt.action, got, tt.owed)
		}
	}
	r, err := d.dispatch("Reply", map[string]any{"objectId": post, "content": "indeed", "visibility": "local"})
	if err != nil {
		t.Fatal(err)
	}
	if answer := mustDoc(t, d.object(r.ObjectID).Raw); !reflect.DeepEqual(answer["to"], []any{here + "/#Public"}) {
		t.Errorf("an answer that says local is to %v", answer["to"])
	}
}
