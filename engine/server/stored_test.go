package server_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// anonymous returns a response as text without the id of its request. Tests compare two such texts
// if a client must not be able to tell the responses apart.
func (r response) anonymous() string {
	id := r.Header.Get("X-Request-Id")
	return fmt.Sprint(r.StatusCode, strings.ReplaceAll(fmt.Sprint(r.Header), id, ""), strings.ReplaceAll(string(r.body), id, ""))
}

func TestPostsAreReadByTheirRecipients(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	follower, followerKey := f.remote("https://peer.example/users/follower")
	pending, pendingKey := f.remote("https://peer.example/users/pending")
	_, neighbourKey := f.remote("https://peer.example/users/neighbour")
	f.relate(f.alice, user.Follower, user.Accepted, follower.ID, start)
	f.relate(f.alice, user.Follower, user.Pending, pending.ID, start)
	blocked, blockedKey := f.remote("https://peer.example/users/blocked")
	f.relate(f.alice, user.Follower, user.Accepted, blocked.ID, start)
	f.block(f.alice, blocked.ID)
	suspended, suspendedKey := f.remote("https://peer.example/users/suspended")
	f.relate(f.alice, user.Follower, user.Accepted, suspended.ID, start)
	f.policy.Suspended = []vocab.ID{suspended.ID}
	f.relate(f.alice, user.Follower, user.Accepted, f.local.ID(f.bob), start)
	bobs, err := f.keys.Keys(f.bob)
	if err != nil {
		t.Fatal(err)
	}
	askers := map[string][]asking{
		"anybody":               nil,
		"owner":                 {bearerToken(f.token(f.alice, "read"))},
		"bob by token":          {bearerToken(f.token(f.bob, "read"))},
		"bob by signature":      {f.signed(bobs.RSA, signature.RFC9421)},
		"carol":                 {f.signed(f.carolKey, signature.RFC9421)},
		"carol, the other way":  {f.signed(f.carolKey, signature.Cavage)},
		"carol's name, forged":  {f.signed(f.carolKey, signature.RFC9421), header("Signature", "sig1=:AAAA:")},
		"follower":              {f.signed(followerKey, signature.RFC9421)},
		"pending":               {f.signed(pendingKey, signature.RFC9421)},
		"blocked":               {f.signed(blockedKey, signature.RFC9421)},
		"suspended":             {f.signed(suspendedKey, signature.RFC9421)},
		"neighbour of follower": {f.signed(neighbourKey, signature.RFC9421)},
	}
	all := []string{"anybody", "owner", "bob by token", "bob by signature", "carol", "carol, the other way", "carol's name, forged", "follower", "pending", "blocked", "suspended", "neighbour of follower"}
	followers := f.local.Followers(f.alice)
	for _, c := range []struct {
		name string
		to   []vocab.ID
		may  []string
	}{
		{"public", []vocab.ID{vocab.Public}, all},
		{"unlisted", []vocab.ID{followers, vocab.Public}, all},
		{"PRV-01 PRV-14 for followers", []vocab.ID{followers}, []string{"owner", "bob by token", "bob by signature", "follower"}},
		{"PRV-01 PRV-03 direct", []vocab.ID{f.carol.ID}, []string{"owner", "carol", "carol, the other way"}},
		{"PRV-02 direct, before the block", []vocab.ID{f.carol.ID, blocked.ID, suspended.ID}, []string{"owner", "carol", "carol, the other way"}},
		{"PRV-07 for a group", []vocab.ID{f.local.ID(f.alice) + "/groups/x"}, []string{"owner"}},
		{"PRV-09 for nobody in particular", nil, []string{"owner"}},
	} {
		activity, object := f.post(f.alice, "words", start, c.to...)
		for asker, how := range askers {
			for _, id := range []vocab.ID{activity, object} {
				want := 404
				for _, m := range c.may {
					if m == asker {
						want = 200
					}
				}
				r := f.get(string(id), how...)
				if r.StatusCode != want {
					t.Errorf("%s, asked by %s: %d, want %d: %s", c.name, asker, r.StatusCode, want, r.body)
					continue
				}
				private := c.may[0] == "owner"
				if got := r.Header.Get("Cache-Control") == "private, no-store"; got != private || private && r.Header.Get("ETag") != "" {
					t.Errorf("PRV-11: %s, asked by %s: %v", c.name, asker, r.Header)
				}
				if strings.Contains(string(r.body), "hidden.example") {
					t.Errorf("OB-09: %s shows hidden recipients: %s", c.name, r.body)
				}
				if want == 200 {
					if d := r.doc(t); d.Text("id") != string(id) || d["@context"] == nil || r.Header.Get("Content-Type") != vocab.ActivityJSON {
						t.Errorf("OB-08: %s is %v", id, d)
					}
				}
				unknown := strings.Replace(string(id), string(id[len(id)-36:]), uuid.NewString(), 1)
				if want == 404 && r.anonymous() != f.get(unknown, how...).anonymous() {
					t.Errorf("PRV-13: %s, asked by %s, differs from what is not there: %s", c.name, asker, r.anonymous())
				}
			}
		}
	}
}

func TestDeletedPostsLeaveATombstoneToThoseWhoMightHaveReadThem(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	created, public := f.post(f.alice, "public", start, vocab.Public)
	_, direct := f.post(f.alice, "direct", start, f.carol.ID)
	f.bury(f.alice, public)
	f.bury(f.alice, direct)

	r := f.get(string(public)).want(t, 410)
	want := vocab.Doc{"id": string(public), "type": "Tombstone", "formerType": "Note", "deleted": "2026-02-21T12:00:00Z"}
	d := r.doc(t)
	delete(d, "@context")
	if diff := cmp.Diff(want, d); diff != "" || r.Header.Get("Content-Type") != vocab.ActivityJSON {
		t.Errorf("OB-06 (-want +got):\n%s", diff)
	}
	unknown := f.get(string(f.local.NewObjectID(f.alice)))
	if gone := f.get(string(direct)); gone.anonymous() != unknown.anonymous() {
		t.Errorf("PRV-13: a deleted private post is %s, want the same as an unknown one: %s", gone.anonymous(), unknown.anonymous())
	}
	f.get(string(direct), f.signed(f.carolKey, signature.RFC9421)).want(t, 410)
	if body := string(f.get(string(created)).want(t, 200).body); strings.Contains(body, "public</p>") || !strings.Contains(body, "Tombstone") {
		t.Errorf("the Create of a deleted post is %s, want no words of it", body)
	}
}

func TestWhatIsNoThingOfOursIsNotLookedFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, object := f.post(f.alice, "x", start, vocab.Public)
	id := string(object[len(object)-36:])
	suspended := f.user("suspended")
	_, theirs := f.post(suspended, "x", start, vocab.Public)
	f.state(suspended, instance.UserSuspended)
	for _, path := range []string{"/users/alice/objects/x", "/users/alice/objects/" + strings.ToUpper(id), "/users/alice/objects/urn:uuid:" + id,
		"/users/alice/objects/{" + id + "}", "/users/alice/activities/" + id, "/users/bob/objects/" + id, "/users/nobody/objects/" + id, string(theirs),
		"/users/alice/objects/" + strings.ReplaceAll(id, "-", "")} {
		f.get(path).want(t, 404)
	}
	f.get(string(object), header("Accept", "text/html")).want(t, 406)
	f.get(string(object), f.signed(f.blockedKey(), signature.RFC9421)).want(t, 403)
}

func TestStrangersCannotTakeAllConnections(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, object := f.post(f.alice, "x", start, vocab.Public)
	for range 30 { // the database is already open
		f.get(string(object)).want(t, 200)
	}
	var cold [100]vocab.ID // each of these users needs a new connection
	for n := range cold {
		cold[n] = f.local.ID(f.coldUser()) + "/outbox"
	}
	var refused atomic.Int32
	var all sync.WaitGroup
	for _, id := range cold {
		all.Go(func() {
			if r := f.get(string(id)); r.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(r.body), "crowded") {
				refused.Add(1)
				if r.Header.Get("Retry-After") != "1" {
					t.Errorf("Retry-After %q, want 1", r.Header.Get("Retry-After"))
				}
			}
		})
	}
	all.Wait()
	if refused.Load() == 0 {
		t.Error("strangers were let into a hundred cold databases at once")
	}
}

// One address uses up its share of reads. Another address can still read, both from open databases
// and from those that need a new connection.
func TestOneAddressThatReadsLeavesRoomForAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, object := f.post(f.alice, "x", start, vocab.Public)
	from := func(address string) asking { return func(r *http.Request) { r.RemoteAddr = address + ":1" } }
	crowded := func(target, address string) bool {
		r := f.get(target, from(address))
		return r.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(r.body), "crowded")
	}
	refused := 0
	for range 40 {
		if crowded(string(f.local.ID(f.coldUser()))+"/outbox", "192.0.2.1") {
			refused++
		}
	}
	if refused < 20 {
		t.Errorf("%d of 40 cold databases were refused to one address, want most", refused)
	}
	if crowded(string(f.local.ID(f.coldUser()))+"/outbox", "198.51.100.1") {
		t.Error("no database is opened for another address")
	}
	f.get(string(object), from("198.51.100.1")).want(t, 200)
	release := f.server.HoldReads(netip.MustParseAddr("192.0.2.1"))
	if !crowded(string(object), "192.0.2.1") || !crowded(string(f.local.Outbox(f.alice)), "192.0.2.1") {
		t.Error("an address that has its part of the reads gets more")
	}
	f.get(string(object), from("198.51.100.1")).want(t, 200)
	f.get(string(f.local.Outbox(f.alice)), from("198.51.100.1")).want(t, 200)
	for name, value := range map[string]string{"Authorization": "Basic x", "Signature": "x"} { // these headers prove nothing, so the server sends the kept page
		f.get(string(f.local.Outbox(f.alice)), from("192.0.2.1"), header(name, value)).want(t, 200)
	}
	release()
	f.get(string(object), from("192.0.2.1")).want(t, 200)
}

// coldUser returns a new active user who has no database.
func (f *fixture) coldUser() vocab.Username {
	f.Helper()
	u := mustName(f.T, "c"+strings.ReplaceAll(uuid.NewString(), "-", "")[:20])
	if _, err := f.store.Instance.Users.Reserve(f.Context(), u); err != nil {
		f.Fatal(err)
	}
	if err := f.store.Instance.Users.Activate(f.Context(), u); err != nil {
		f.Fatal(err)
	}
	return u
}

// IN-06: an activity is shown with its proof only if the proof covers the form that is shown.
func TestProofsAreShownWithWhatTheyCover(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	keys, err := f.keys.Keys(f.alice)
	if err != nil {
		t.Fatal(err)
	}
	proven := func(hidden bool) (create, note vocab.ID) {
		create, note = f.local.NewActivityID(f.alice), f.local.NewObjectID(f.alice)
		o := vocab.Doc{"id": string(note), "type": "Note", "attributedTo": string(f.local.ID(f.alice)), "content": "<p>first</p>", "to": string(vocab.Public)}
		d := vocab.Doc{"@context": vocab.ActivityContext(), "id": string(create), "type": "Create", "actor": string(f.local.ID(f.alice)), "to": string(vocab.Public), "object": o}
		if hidden {
			d["bto"] = "https://hidden.example/users/dan"
		}
		raw, err := f.local.Prove(f.alice, d, start)
		if err != nil {
			t.Fatal(err)
		}
		f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
			if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: note, Published: start, Raw: o.JSON()}); err != nil {
				return err
			}
			return tx.Activities.Add(ctx, user.Activity{ID: uuid.Must(uuid.NewV7()), URI: create, Direction: user.Outbound, Type: "Create",
				Actor: f.local.ID(f.alice), Object: note, Published: start, Raw: raw})
		})
		return create, note
	}
	holds := func(d vocab.Doc) bool {
		t.Helper()
		p, err := proof.Parse(d, start)
		if err != nil {
			t.Fatalf("%s: %v", d.JSON(), err)
		}
		if p == nil {
			return false
		}
		if err := p.Verify(keys.Ed25519.Private.Public().(ed25519.PublicKey)); err != nil {
			t.Errorf("%s: %v", d.JSON(), err)
		}
		return true
	}
	create, note := proven(false)
	if !holds(f.get(string(create)).want(t, 200).doc(t)) {
		t.Error("an activity that is shown as it was sent has no proof")
	}
	shown := f.get(string(f.local.Outbox(f.alice))+"?page=true").want(t, 200).doc(t).Sub("orderedItems")
	if shown.Text("id") != string(create) || shown["@context"] != nil || shown["proof"] != nil {
		t.Errorf("in the outbox it is %s, want neither @context nor proof", shown.JSON())
	}
	f.write(f.alice, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Replace(ctx, note, vocab.Doc{"id": string(note), "type": "Note", "attributedTo": string(f.local.ID(f.alice)), "content": "<p>second</p>"}.JSON(), nil, start.Add(time.Hour))
		return err
	})
	if d := f.get(string(create)).want(t, 200).doc(t); holds(d) || d.Sub("object").Text("content") != "<p>second</p>" {
		t.Errorf("an activity with other words is %s", d.JSON())
	}
	secretive, _ := proven(true)
	if holds(f.get(string(secretive)).want(t, 200).doc(t)) {
		t.Error("an activity without its hidden recipients has a proof")
	}
}
