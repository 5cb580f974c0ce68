package engine_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// guest is a member that knows only the SWICG draft, as Emissary does. It receives and sends
// messages as Creates by inboxes, and knows no GroupInfo. It shows a bare key package in a public
// collection. It merges its own commit before it sends the commit.
type guest struct {
	*seat
	peer  *peertest.Peer
	actor *peertest.Actor
	to    []*seat // the members that receive its messages
	seen  int     // how many requests to sam's inbox have been read
}

func newGuest(t *testing.T, devices *enginetest.Devices, address string, to ...*seat) *guest {
	t.Helper()
	g := newDraftActor(t, address, "/users/sam", to...)
	g.seat = &seat{device: devices.Make(t, string(g.actor.ID)), name: "sam's", known: map[string]bool{}}
	g.showPackage(t)
	return g
}

// newDraftActor makes the actor of a guest that has no device yet.
func newDraftActor(t *testing.T, address, path string, to ...*seat) *guest {
	t.Helper()
	g := &guest{peer: peertest.New(t, address), to: to}
	g.actor = g.peer.Actor(path)
	g.actor.Doc["keyPackages"] = string(g.actor.ID) + "/keyPackages"
	g.actor.Show()
	return g
}

// showPackage shows one fresh key package in the public collection.
func (g *guest) showPackage(t *testing.T) {
	t.Helper()
	var made struct{ Content string }
	g.device.Call(t, "keyPackage", map[string]any{}, &made)
	g.showContent(made.Content)
}

// showContent shows one key package in the public collection. It returns the key package's object,
// whose URL is always the same.
func (g *guest) showContent(content string) vocab.Doc {
	id := string(g.actor.ID)
	k := vocab.Doc{"id": id + "/keyPackages/1", "type": "KeyPackage", "attributedTo": id, "mediaType": "message/mls", "encoding": "base64", "content": content}
	path := strings.TrimPrefix(id, g.peer.Origin) + "/keyPackages"
	g.peer.Serve(path, vocab.Doc{"id": id + "/keyPackages", "type": "Collection", "items": []any{k.Text("id")}}.JSON())
	g.peer.Serve(path+"/1", k.JSON())
	return k
}

// send sends a message to all inboxes. The message's Create has an id of its own.
func (g *guest) send(t *testing.T, message string) {
	t.Helper()
	g.sendAs(t, message, vocab.Doc{"type": "PrivateMessage", "id": string(g.actor.ID) + "/objects/" + uuid.NewString(), "context": g.group})
}

// sendAs is send for an object with other properties. No object has lwMetadata.
func (g *guest) sendAs(t *testing.T, message string, more vocab.Doc) {
	t.Helper()
	id := string(g.actor.ID)
	var to []any
	for _, s := range g.to {
		to = append(to, s.user.ID)
	}
	object := vocab.Doc{"attributedTo": id, "to": to, "mediaType": "message/mls", "encoding": "base64", "content": message}
	maps.Copy(object, more)
	activity := vocab.Doc{"@context": vocab.MessageActivityContext(), "type": "Create", "id": id + "/activities/" + uuid.NewString(), "actor": id, "to": to, "object": object}
	if said := more["context"]; said != nil {
		activity["context"] = said
	}
	g.deliver(t, activity.JSON())
}

// deliver posts an activity to all inboxes, which must take it.
func (g *guest) deliver(t *testing.T, body []byte) {
	t.Helper()
	for _, s := range g.to {
		post(t, g.actor, s.user.ID+"/inbox", string(body))
	}
}

func (g *guest) say(t *testing.T, text string) {
	t.Helper()
	g.send(t, g.encrypt(t, text))
}

// commit makes a commit and merges it. It returns the commit's message, which the test sends
// later.
func (g *guest) commit(t *testing.T) (message string) {
	t.Helper()
	m := g.makeCommit(t, map[string]any{"isPrivate": true})
	g.device.Call(t, "merge", map[string]any{"group": g.group}, nil)
	return m.Commit
}

// hears reads incoming messages until holds() returns true.
func (g *guest) hears(t *testing.T, what string, holds func() bool) {
	t.Helper()
	enginetest.Eventually(t, "sam hears "+what, func() bool {
		for _, p := range g.peer.Posted()[g.seen:] {
			g.seen++
			g.take(t, p.Content)
		}
		return holds()
	})
}

// take processes a Create that a member's own server sent.
func (g *guest) take(t *testing.T, body []byte) {
	t.Helper()
	d, err := vocab.ParseDoc(body)
	if err != nil {
		t.Fatal(err)
	}
	object := d.Sub("object")
	id, err := d.ID()
	if by := vocab.ID(d.Text("actor")); err != nil || d.Text("type") != "Create" || !id.SameOrigin(by) || object.Text("attributedTo") != string(by) {
		t.Fatalf("sam cannot read %s: %v", body, err)
	}
	switch content := object.Text("content"); object.Text("type") {
	case "Welcome":
		var joined struct{ Group string }
		g.device.Call(t, "join", map[string]any{"welcome": content}, &joined)
		g.group = joined.Group
	case "PrivateMessage":
		e := entry{Kind: "application", Content: content}
		if object.Sub("lwMetadata").Text("kind") == "" {
			e.Kind = "handshake"
		}
		g.apply(t, e)
	default:
		t.Fatalf("sam cannot read a %s", object.Text("type"))
	}
}
