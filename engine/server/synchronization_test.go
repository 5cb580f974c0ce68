package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// FE-08, PRV-05: a server that signs its request gets the followers on that server only. Requests
// without a valid signature get none.
func TestFollowersAreShownToTheirOwnServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, instanceKey := f.remote("https://peer.example/actor")
	_, otherKey := f.remote("https://other.example/users/dan")
	_, portKey := f.remote("https://peer.example:8443/actor")
	for id, status := range map[vocab.ID]string{
		"https://peer.example/users/carol": user.Accepted, "https://peer.example/users/eve": user.Accepted, "https://Peer.example:443/users/finn": user.Accepted,
		"https://peer.example/users/grace": user.Pending, "https://peer.example:8443/users/heidi": user.Accepted,
		"https://notpeer.example/users/ivan": user.Accepted, "https://peer.example.org/users/judy": user.Accepted,
	} {
		f.relate(f.alice, user.Follower, status, id, start)
	}
	f.relate(f.alice, user.Following, user.Accepted, "https://peer.example/users/mike", start)
	url := string(f.local.FollowersAt(f.alice))
	forged := []asking{f.signed(f.carolKey, signature.RFC9421), header("Signature", "sig1=:AAAA:")}
	theirs := []string{"https://Peer.example:443/users/finn", "https://peer.example/users/carol", "https://peer.example/users/eve"}
	for _, tt := range []struct {
		by     string
		how    []asking
		status int
		shown  []string
	}{
		{"anybody", nil, 401, nil},
		{"a forged signature", forged, 401, nil},
		{"carol", []asking{f.signed(f.carolKey, signature.RFC9421)}, 200, theirs},
		{"carol, the other way", []asking{f.signed(f.carolKey, signature.Cavage)}, 200, theirs},
		{"her server", []asking{f.signed(instanceKey, signature.RFC9421)}, 200, theirs},
		{"another server", []asking{f.signed(otherKey, signature.RFC9421)}, 200, []string{}},
		{"another server on her host", []asking{f.signed(portKey, signature.RFC9421)}, 200, []string{"https://peer.example:8443/users/heidi"}},
		{"a blocked host", []asking{f.signed(f.blockedKey(), signature.RFC9421)}, 403, nil},
		{"bob's program", []asking{bearerToken(f.token(f.bob, "read"))}, 401, nil},
		{"alice's program", []asking{bearerToken(f.token(f.alice, "read"))}, 401, nil},
		{"carol with a token", []asking{f.signed(f.carolKey, signature.RFC9421), bearerToken(f.token(f.alice, "read"))}, 401, nil},
	} {
		r := f.get(url, tt.how...)
		if r.StatusCode != tt.status {
			t.Errorf("asked by %s: %d, want %d: %s", tt.by, r.StatusCode, tt.status, r.body)
			continue
		}
		if c := r.Header.Get("Cache-Control"); strings.Contains(c, "public") || !strings.Contains(c, "no-store") || !slices.Contains(r.Header.Values("Vary"), "Signature") {
			t.Errorf("PRV-11: asked by %s: a cache may show it to others: %v", tt.by, r.Header)
		}
		if tt.status == 401 && !strings.HasPrefix(r.Header.Get("WWW-Authenticate"), "Signature") {
			t.Errorf("asked by %s: not told to sign: %v", tt.by, r.Header)
		}
		if tt.status != 200 {
			if strings.Contains(string(r.body), "users/") {
				t.Errorf("asked by %s: %s", tt.by, r.body)
			}
			continue
		}
		var doc struct {
			ID, Type     string
			TotalItems   int
			OrderedItems []string
		}
		r.decode(t, &doc)
		slices.Sort(doc.OrderedItems)
		if doc.ID != url || doc.Type != "OrderedCollection" || doc.TotalItems != len(tt.shown) || doc.OrderedItems == nil || !slices.Equal(doc.OrderedItems, tt.shown) {
			t.Errorf("asked by %s: %s, want %q", tt.by, r.body, tt.shown)
		}
	}
	f.get("/users/nobody/followers_synchronization", f.signed(f.carolKey, signature.RFC9421)).want(t, 404)
	f.get("/users/nobody/followers_synchronization").want(t, 401)
	f.state(f.alice, instance.UserDeleted)
	f.get(url, f.signed(f.carolKey, signature.RFC9421)).want(t, 410)
}
