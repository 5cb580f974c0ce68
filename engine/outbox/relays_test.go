package outbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// subscribe stores relays. Each has its own Follow.
func (d *desk) subscribe(relays ...instance.Relay) {
	d.t.Helper()
	for i, r := range relays {
		r.Follow = vocab.ID(fmt.Sprintf(here+"/actor#follows/%d", i))
		if err := d.c.Instance.Relays.Save(d.t.Context(), r, time.Now()); err != nil {
			d.t.Fatal(err)
		}
	}
	if err := d.relays.Refresh(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

// sentRelays returns the deliveries to relays. It records all deliveries as delivered.
func (d *desk) sentRelays() []string {
	d.t.Helper()
	out := []string{}
	for _, r := range d.owed() {
		if !strings.HasSuffix(r.Host, "-relay.example") {
			continue
		}
		signer := "alice"
		if r.Instance {
			signer = "instance"
		}
		out = append(out, fmt.Sprintf("%s to %s by %s", r.Type, r.Host, signer))
	}
	slices.Sort(out)
	return out
}

func TestWhatRelaysGet(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.owed()
	d.gate["blocked-relay.example"] = true
	relay := func(host, style, state string) instance.Relay {
		return instance.Relay{Actor: vocab.ID("https://" + host + "/actor"), Inbox: vocab.ID("https://" + host + "/inbox"), Style: style, State: state}
	}
	d.subscribe(relay("mastodon-relay.example", instance.RelayMastodon, user.Accepted), relay("litepub-relay.example", instance.RelayLitePub, user.Accepted),
		relay("blocked-relay.example", instance.RelayMastodon, user.Accepted), relay("pending-relay.example", instance.RelayMastodon, user.Pending),
		relay("rejected-relay.example", instance.RelayLitePub, user.Rejected))
	theirs := d.world.post("https://p.example/notes/77", bob, public)

	public := d.must("CreateNote", map[string]any{"content": "hi", "visibility": "public"}).Object
	if diff := cmp.Diff([]string{"Announce to litepub-relay.example by instance", "Create to mastodon-relay.example by alice"}, d.sentRelays()); diff != "" {
		t.Error(diff)
	}
	unlisted := d.must("CreateNote", map[string]any{"content": "hi", "visibility": "unlisted"}).Object
	both := func(kind string) []string {
		return []string{kind + " to litepub-relay.example by alice", kind + " to mastodon-relay.example by alice"}
	}
	for _, tt := range []struct {
		name, action string
		params       map[string]any
		want         []string
	}{
		{"a reply", "Reply", map[string]any{"objectId": theirs, "content": "hi"}, []string{"Announce to litepub-relay.example by instance", "Create to mastodon-relay.example by alice"}},
		{"an unlisted post", "CreateNote", map[string]any{"content": "hi", "visibility": "unlisted"}, []string{}},
		{"a followers-only post", "CreateNote", map[string]any{"content": "hi", "visibility": "followers"}, []string{}},
		{"a direct post", "CreateNote", map[string]any{"content": "hi", "visibility": "direct", "to": []string{bob}}, []string{}},
		{"a message", "SendMessage", map[string]any{"content": "hi", "recipientUri": bob}, []string{}},
		{"a Like", "Like", map[string]any{"objectId": theirs}, []string{}},
		{"a boost", "Boost", map[string]any{"objectId": theirs}, []string{}},
		{"an Update", "UpdateObject", map[string]any{"objectId": public, "content": "hello"}, both("Update")},
		{"an Update of an unlisted post", "UpdateObject", map[string]any{"objectId": unlisted, "content": "hello"}, []string{}},
		{"a Delete", "DeleteObject", map[string]any{"objectId": public}, both("Delete")},
		{"a Delete of an unlisted post", "DeleteObject", map[string]any{"objectId": unlisted}, []string{}},
	} {
		d.owed()
		d.must(tt.action, tt.params)
		if diff := cmp.Diff(tt.want, d.sentRelays()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// FE-16: the instance actor sends the Announce, which is public and contains the post's id. A
// Delete of the post is sent after the Announce.
func TestTheAnnounceForRelays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.subscribe(instance.Relay{Actor: "https://litepub-relay.example/actor", Inbox: "https://litepub-relay.example/inbox", Style: instance.RelayLitePub, State: user.Accepted})
	note := d.must("CreateNote", map[string]any{"content": "hi", "visibility": "public"}).Object
	if d.wakes.Load() == 0 {
		t.Error("the dispatcher sleeps on, want it awake")
	}
	d.must("DeleteObject", map[string]any{"objectId": note})
	rows := d.owed()
	if len(rows) != 2 || rows[0].Type != "Announce" || rows[1].Type != "Delete" {
		t.Fatalf("deliveries %+v, want the Announce and then the Delete", rows)
	}
	a, err := vocab.ParseActivity(rows[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	if a.Actor != here+"/actor" || a.Object.ID != note || a.Object.Doc != nil || !slices.Equal(a.To, []vocab.ID{vocab.Public}) || !a.ID.SameOrigin(a.Actor) || a.Published.IsZero() {
		t.Errorf("the Announce is %s", rows[0].Body)
	}
}

// An inbox belongs to a relay and to a follower. It gets one delivery.
func TestARelayThatFollowsGetsAPostOnce(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.owed()
	d.must("CreateNote", map[string]any{"content": "hi", "visibility": "public"})
	before := inboxes(d.owed())
	if len(before) == 0 {
		t.Fatal("alice has no followers")
	}
	d.subscribe(instance.Relay{Actor: "https://p.example/relay", Inbox: vocab.ID(before[0]), Style: instance.RelayMastodon, State: user.Accepted})
	d.must("CreateNote", map[string]any{"content": "hi", "visibility": "public"})
	if got := inboxes(d.owed()); !slices.Equal(got, before) {
		t.Errorf("it goes to %q, want %q", got, before)
	}
}
