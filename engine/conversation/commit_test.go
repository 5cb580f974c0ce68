package conversation_test

import (
	"bytes"
	"encoding/json"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Rows 1 to 3 of docs/conversations.md, Cases and their tests: a commit of any epoch but the
// current one changes nothing. The refusal of a past epoch lists the commits that the sender
// missed.
func TestRow3ACommitOfAnotherEpochIsRefusedWithWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	late, _ := s.request(s.alice, s.group, mlstest.Change{})
	winner := s.commit(s.alice, mlstest.Change{})
	s.commit(s.alice, mlstest.Change{})
	_, err := s.registry.Commit(t.Context(), s.at, late)
	c := s.wantConflict("a stale commit", err, "epoch_conflict")
	if c.Epoch != 2 || len(c.Missing) != 2 || c.Missing[0].Seq != winner.Seq || c.GroupID != s.group.ID {
		t.Errorf("the refusal says %+v", c)
	}
	ahead := *s.group
	ahead.Epoch++
	early, _ := s.request(s.alice, &ahead, mlstest.Change{})
	_, err = s.registry.Commit(t.Context(), s.at, early)
	if c := s.wantConflict("a commit from the future", err, "epoch_conflict"); len(c.Missing) != 0 {
		t.Errorf("the refusal of an epoch to come tells of %d commits", len(c.Missing))
	}
	if v := s.view(); v.Epoch != 2 || len(s.log()) != 2 {
		t.Errorf("epoch %d with %d entries, want 2", v.Epoch, len(s.log()))
	}
}

// Rows 4, 5 and 15 of docs/conversations.md, Cases and their tests: the sender did not get the
// answer to a commit, or the process was killed after the commit. The sender repeats the request
// to another process, and gets the first answer.
func TestRows4And5ARepeatedCommitIsAnsweredAsBefore(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	r, next := s.request(s.alice, s.group, mlstest.Change{})
	first, err := s.registry.Commit(t.Context(), s.at, r)
	if err != nil || first.Replayed {
		t.Fatalf("%+v, %v", first, err)
	}
	s.group = next
	s.commit(s.alice, mlstest.Change{})
	again, err := s.node(s.store).Commit(t.Context(), s.at, r)
	if err != nil || !again.Replayed || again.Seq != first.Seq || again.Epoch != first.Epoch {
		t.Errorf("again: %+v, %v, want %+v", again, err, first)
	}
	other, _ := s.request(s.alice, s.group, mlstest.Change{})
	other.Key = r.Key
	_, err = s.registry.Commit(t.Context(), s.at, other)
	s.wantRefused("the same key with another body", err, fault.Unprocessable, "idempotency_key_reuse")
	r.Key = s.key()
	_, err = s.registry.Commit(t.Context(), s.at, r)
	s.wantConflict("the same commit with another key", err, "epoch_conflict")

	elsewhere := mlstest.NewGroup(s.alice)
	v, err := s.registry.Create(t.Context(), s.user, elsewhere.Info(s.alice))
	if err != nil {
		t.Fatal(err)
	}
	own, _ := s.request(s.alice, elsewhere, mlstest.Change{})
	own.Key = other.Key
	if a, err := s.registry.Commit(t.Context(), conversation.Place{Host: s.user, ID: v.ID}, own); err != nil || a.Replayed {
		t.Errorf("the key in another conversation: %+v, %v, want it of its own", a, err)
	}
	if len(s.log()) != 2 {
		t.Errorf("%d entries, want 2", len(s.log()))
	}
}

// Rows 11, 12 and 22 of docs/conversations.md, Cases and their tests: the host checks all parts of
// a commit before it writes anything.
func TestRow22ACommitMustBeWhatItSays(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	stranger := mlstest.NewDevice(carolID, time.Now())
	for name, c := range map[string]struct {
		change func(*conversation.Commit)
		kind   fault.Kind
		code   string
	}{
		"no key":                     {func(c *conversation.Commit) { c.Key = "" }, fault.Invalid, "idempotency_key_missing"},
		"another member's signature": {func(c *conversation.Commit) { c.Caller = bobID }, fault.Forbidden, "wrong_sender"},
		"a stranger":                 {func(c *conversation.Commit) { c.Caller = carolID }, fault.NotFound, "no_conversation"},
		"no GroupInfo":               {func(c *conversation.Commit) { c.GroupInfo = nil }, fault.Unprocessable, "bad_group_info"},
		"the GroupInfo of before":    {func(c *conversation.Commit) { c.GroupInfo = s.group.Info(s.alice) }, fault.Unprocessable, "bad_group_info"},
		"another member's GroupInfo": {func(c *conversation.Commit) {
			_, next := s.group.Commit(s.alice, mlstest.Change{})
			c.GroupInfo = next.Info(s.bob)
		}, fault.Unprocessable, "bad_group_info"},
		"a GroupInfo with a device more": {func(c *conversation.Commit) {
			_, next := s.group.Commit(s.alice, mlstest.Change{Add: []*mlstest.Device{stranger}})
			c.GroupInfo = next.Info(s.alice)
		}, fault.Unprocessable, "bad_group_info"},
		"a GroupInfo with a device less": {func(c *conversation.Commit) {
			_, next := s.group.Commit(s.alice, mlstest.Change{Remove: []*mlstest.Device{s.bob}})
			c.GroupInfo = next.Info(s.alice)
		}, fault.Unprocessable, "bad_group_info"},
		"a Welcome for nobody": {func(c *conversation.Commit) { c.Welcomes = [][]byte{s.group.Welcome(stranger)} }, fault.Unprocessable, "bad_welcomes"},
		"a PrivateMessage":     {func(c *conversation.Commit) { c.Message = s.group.PrivateCommit() }, fault.Unprocessable, "commit_not_public"},
		"words":                {func(c *conversation.Commit) { c.Message = s.group.Plain(s.alice) }, fault.Unprocessable, "commit_not_public"},
		"half of it":           {func(c *conversation.Commit) { c.Message = c.Message[:len(c.Message)/2] }, fault.Invalid, "bad_mls_message"},
		"a broken signature":   {func(c *conversation.Commit) { c.Message = bytes.Clone(c.Message); c.Message[len(c.Message)-100] ^= 1 }, fault.Invalid, "bad_mls_message"},
		"another group": {func(c *conversation.Commit) {
			g := mlstest.NewGroup(s.alice)
			g.Epoch = s.group.Epoch
			c.Message, _ = g.Commit(s.alice, mlstest.Change{})
		}, fault.Invalid, "wrong_group"},
		"an external commit": {func(c *conversation.Commit) { c.Message, _ = s.group.Rejoin(mlstest.NewDevice(aliceID, time.Now())) }, fault.Unprocessable, "wrong_sender"},
		"too large":          {func(c *conversation.Commit) { c.Message = make([]byte, 1<<20+1) }, fault.TooLarge, ""},
	} {
		r, _ := s.request(s.alice, s.group, mlstest.Change{})
		c.change(&r)
		_, err := s.registry.Commit(t.Context(), s.at, r)
		s.wantRefused(name, err, c.kind, c.code)
	}
	for name, next := range map[string]func(*mlstest.Group) []byte{
		"another member's key is replaced": func(g *mlstest.Group) []byte {
			return g.Replace(s.bob, mlstest.NewDevice(bobID, time.Now())).Info(s.alice)
		},
		"the committer's key is replaced without a path": func(g *mlstest.Group) []byte {
			other := mlstest.NewDevice(aliceID, time.Now())
			return g.Replace(s.alice, other).Info(other)
		},
	} {
		r, after := s.request(s.alice, s.group, mlstest.Change{})
		r.GroupInfo = next(after)
		_, err := s.registry.Commit(t.Context(), s.at, r)
		s.wantRefused(name, err, fault.Unprocessable, "bad_group_info")
	}
	renewed := mlstest.NewDevice(aliceID, time.Now())
	path, after := s.group.CommitPath(s.alice, renewed)
	_, err := s.registry.Commit(t.Context(), s.at, conversation.Commit{Caller: aliceID, Key: s.key(), Message: path, GroupInfo: after.Replace(renewed, s.alice).Info(s.alice)})
	s.wantRefused("the committer keeps its key beside a path with another one", err, fault.Unprocessable, "bad_group_info")
	without, _ := s.request(s.alice, s.group, mlstest.Change{Add: []*mlstest.Device{stranger}})
	without.Welcomes = nil
	_, err = s.registry.Commit(t.Context(), s.at, without)
	s.wantRefused("an Add without a Welcome", err, fault.Unprocessable, "bad_welcomes")
	if v := s.view(); v.Epoch != 1 || len(v.Members) != 2 {
		t.Errorf("epoch %d with %d members, want 1 with 2", v.Epoch, len(v.Members))
	}
	if _, err := s.registry.Commit(t.Context(), s.at, conversation.Commit{Caller: aliceID, Key: s.key(), Message: path, GroupInfo: after.Info(renewed)}); err != nil {
		t.Errorf("a commit that renews the committer's key: %v", err)
	}
}

func TestMembersRemoveThemselvesAndTheAdminOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	carol := mlstest.NewDevice(carolID, time.Now())
	s.commit(s.bob, mlstest.Change{Add: []*mlstest.Device{carol}}) // every member may add an actor
	kick, _ := s.request(s.bob, s.group, mlstest.Change{Remove: []*mlstest.Device{carol}})
	_, err := s.registry.Commit(t.Context(), s.at, kick)
	s.wantRefused("a member removes another", err, fault.Forbidden, "not_admin")
	_, err = s.send(s.bob, s.group.Leave(carol))
	s.wantRefused("a member asks for another's removal", err, fault.Forbidden, "wrong_sender")
	if _, err := s.send(carol, s.group.Leave(carol)); err != nil {
		t.Fatal(err)
	}
	s.commit(s.bob, mlstest.Change{Remove: []*mlstest.Device{carol}}) // permitted to bob, because carol asked to be removed
	if v := s.view(); len(v.Members) != 2 || v.Epoch != 3 {
		t.Errorf("%d members at epoch %d", len(v.Members), v.Epoch)
	}
	s.commit(s.alice, mlstest.Change{Remove: []*mlstest.Device{s.bob}})
	if v := s.view(); len(v.Members) != 1 || v.Members[0].Actor != aliceID {
		t.Errorf("the members are %+v", v.Members)
	}
}

// expectRefused fails unless the host refuses every request and every read by the device's actor.
func (s *scene) expectRefused(device *mlstest.Device) {
	s.Helper()
	id := actorOf(device)
	r, _ := s.request(device, s.group, mlstest.Change{})
	_, err := s.registry.Commit(s.Context(), s.at, r)
	s.wantRefused("commit", err, fault.Forbidden, "not_member")
	_, err = s.send(device, s.group.Message())
	s.wantRefused("message", err, fault.Forbidden, "not_member")
	_, err = s.rejoin(mlstest.NewDevice(device.Identity, time.Now()))
	s.wantRefused("external commit", err, fault.Forbidden, "not_member")
	_, _, err = s.registry.ReadLog(s.Context(), s.at, id, 0)
	s.wantRefused("log", err, fault.Forbidden, "not_member")
	_, _, err = s.registry.GroupInfo(s.Context(), s.at, id)
	s.wantRefused("group info", err, fault.Forbidden, "not_member")
	_, err = s.registry.View(s.Context(), s.at, id)
	s.wantRefused("view", err, fault.Forbidden, "not_member")
}

// Row 9 of docs/conversations.md, Cases and their tests: the host refuses every request and every
// read by a removed member.
func TestRow9ARemovedMemberIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	before := s.group
	s.commit(s.alice, mlstest.Change{Remove: []*mlstest.Device{s.bob}})
	s.eachEvent(func(e user.Event) {
		var told struct {
			ActorURI string
			Removed  []string
		}
		if err := json.Unmarshal(e.Payload, &told); e.Type == "mls.member.removed" && (err != nil || told.ActorURI != aliceID || !slices.Equal(told.Removed, []string{bobID})) {
			t.Errorf("the host was told of a removal by %s, want that of bob by alice", e.Payload)
		}
	})
	if n := s.events()["mls.member.removed"]; n != 1 {
		t.Errorf("the host was told of %d removals, want 1", n)
	}
	s.group = before
	s.expectRefused(s.bob)
	_, _, err := s.registry.ReadLog(t.Context(), s.at, carolID, 0)
	s.wantRefused("a stranger's log", err, fault.NotFound, "no_conversation")
}

// rejoin lets a device join by an external commit. The commit removes the devices in removed.
func (s *scene) rejoin(d *mlstest.Device, removed ...*mlstest.Device) (conversation.Accepted, error) {
	message, next := s.group.Rejoin(d, removed...)
	a, err := s.registry.Commit(s.Context(), s.at, conversation.Commit{Caller: vocab.ID(d.Identity), Key: s.key(), Message: message, GroupInfo: next.Info(d), External: true})
	if err == nil {
		s.group = next
	}
	return a, err
}

// Row 10 of docs/conversations.md, Cases and their tests: a member whose device lost its state
// joins again by an external commit. A second external commit within five minutes is refused.
func TestRow10AMemberJoinsAgainByAnExternalCommit(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	_, err := s.rejoin(mlstest.NewDevice(bobID, time.Now()), s.alice)
	s.wantRefused("a rejoin that removes another actor", err, fault.Forbidden, "not_admin")
	again := mlstest.NewDevice(bobID, time.Now())
	if a, err := s.rejoin(again, s.bob); err != nil || a.Epoch != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	_, err = s.rejoin(mlstest.NewDevice(bobID, time.Now()), again)
	s.wantRefused("a second one at once", err, fault.RateLimited, "rejoin_cooldown")
	s.later(6 * time.Minute)
	if _, err := s.rejoin(mlstest.NewDevice(bobID, time.Now()), again); err != nil {
		t.Error(err)
	}
	if v := s.view(); len(v.Members) != 2 || v.Epoch != 3 {
		t.Errorf("%d members at epoch %d", len(v.Members), v.Epoch)
	}
	info, epoch, err := s.registry.GroupInfo(t.Context(), s.at, bobID)
	if err != nil || epoch != 3 {
		t.Fatal(epoch, err)
	}
	if g, err := mls.ParseGroupInfo(info); err != nil || g.Epoch != 3 {
		t.Errorf("the GroupInfo is of %+v, %v", g, err)
	}
}

func TestAConversationBeginsWithAGroupOfOneDevice(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	two, _ := mlstest.NewGroup(s.alice), s.bob
	_, grown := two.Commit(s.alice, mlstest.Change{Add: []*mlstest.Device{s.bob}})
	for name, info := range map[string][]byte{
		"two devices": grown.Info(s.alice), "another actor": mlstest.NewGroup(s.bob).Info(s.bob), "an id of another form": mlstest.NewGroupWith("group 1", s.alice).Info(s.alice),
		"noise": []byte("noise"), "a message": s.group.Message(),
	} {
		_, err := s.registry.Create(t.Context(), s.user, info)
		s.wantRefused(name, err, fault.Unprocessable, "bad_group_info")
	}
	_, err := s.registry.Create(t.Context(), s.user, s.group.Info(s.alice))
	s.wantRefused("the group of another conversation", err, fault.Conflict, "group_taken")
}

// Commits to several conversations of one host share a transaction. One of them is refused because
// of its old epoch. This does not affect the other commits in the transaction.
func TestARefusedCommitTouchesNoNeighbour(t *testing.T) {
	t.Parallel()
	s, g := gated(t)
	type talk struct {
		at      conversation.Place
		first   conversation.Commit
		isStale bool
	}
	var talks []talk
	for n := range 20 {
		group := mlstest.NewGroup(s.alice)
		v, err := s.registry.Create(t.Context(), s.user, group.Info(s.alice))
		if err != nil {
			t.Fatal(err)
		}
		k := talk{at: conversation.Place{Host: s.user, ID: v.ID}, isStale: n%2 == 1}
		k.first, _ = s.request(s.alice, group, mlstest.Change{})
		if k.isStale {
			winner, _ := s.request(s.alice, group, mlstest.Change{})
			if _, err := s.registry.Commit(t.Context(), k.at, winner); err != nil {
				t.Fatal(err)
			}
		}
		talks = append(talks, k)
	}
	var wg sync.WaitGroup
	free := make(chan struct{})
	g.set(func() error { <-free; return nil })
	for _, k := range talks {
		wg.Go(func() {
			a, err := s.registry.Commit(t.Context(), k.at, k.first)
			if k.isStale {
				s.wantConflict("a commit of an old epoch", err, "epoch_conflict")
			} else if err != nil || a.Epoch != 1 {
				t.Errorf("its neighbour: %+v, %v", a, err)
			}
		})
	}
	for _, k := range talks {
		for s.registry.Waiting(k.at) == 0 { // wait until all commits are in the queues
			runtime.Gosched()
		}
	}
	close(free)
	wg.Wait()
}
