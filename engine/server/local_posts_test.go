package server_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Other users of the server see a local post. A follower on another server cannot get it by any
// id, and finds it in no collection.
func TestALocalPostIsThereForUsersAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	me := f.local.ID(f.alice)
	create, note := f.post(f.alice, "for us", start, audience.Here(me))
	_, public := f.post(f.alice, "for all", start.Add(time.Second), vocab.Public)
	f.relate(f.alice, user.Follower, user.Accepted, f.carol.ID, start)
	carol := f.signed(f.carolKey, signature.RFC9421)
	bob := bearerToken(f.token(f.bob, "read"))
	for _, id := range []vocab.ID{create, note} {
		f.get(string(id)).want(t, 404)
		f.get(string(id), carol).want(t, 404)
		f.get(string(id), bob).want(t, 200)
	}
	f.get(string(public), carol).want(t, 200)
	if got := f.walk(string(me)+"/outbox", func() {}, carol); len(got) != 1 || slices.Contains(got, create) {
		t.Errorf("a follower elsewhere finds %q", got)
	}
	if got := f.walk(string(me)+"/outbox", func() {}, bob); !slices.Contains(got, create) {
		t.Errorf("another user finds %q", got)
	}
}
