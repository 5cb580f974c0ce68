package conversation_test

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// withSam adds a device of sam's to the group. Sam's server knows only the SWICG draft, so the
// conversation is mixed after that.
func (s *scene) withSam() *mlstest.Device {
	s.Helper()
	sam := mlstest.NewDevice(samID, time.Now())
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{sam}})
	return sam
}

// sealed returns a commit by a device, and the group after the commit. The commit is a
// PrivateMessage and has no GroupInfo.
func (s *scene) sealed(by *mlstest.Device, c mlstest.Change) (conversation.Commit, *mlstest.Group) {
	message, next := s.group.SealedCommit(c)
	r := conversation.Commit{Caller: vocab.ID(by.Identity), Key: s.key(), Message: message}
	for _, d := range c.Add {
		r.Added = append(r.Added, d.Package)
	}
	for _, d := range c.Remove {
		r.Removed = append(r.Removed, vocab.ID(d.Identity))
	}
	if len(c.Add) > 0 {
		r.Welcomes = [][]byte{next.Welcome(c.Add...)}
	}
	return r, next
}

func (s *scene) accept(r conversation.Commit, next *mlstest.Group) conversation.Accepted {
	s.Helper()
	a, err := s.registry.Commit(s.Context(), s.at, r)
	if err != nil {
		s.Fatalf("commit: %v", err)
	}
	s.group = next
	return a
}

// While one member's server knows only the SWICG draft, commits and proposals must be
// PrivateMessages and need no GroupInfo. Before that and after that, they must be PublicMessages.
func TestTheFramingOfHandshakesFollowsTheMembers(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	early, _ := s.sealed(s.bob, mlstest.Change{})
	_, err := s.registry.Commit(t.Context(), s.at, early)
	s.wantRefused("a PrivateMessage among Lightweb members", err, fault.Unprocessable, "commit_not_public")
	_, err = s.send(s.bob, s.group.PrivateProposal())
	s.wantRefused("a proposal in a PrivateMessage", err, fault.Unprocessable, "not_a_message")

	sam := s.withSam()
	if !s.view().Mixed {
		t.Error("the conversation is not mixed with a member who knows the draft alone")
	}
	s.takeOwed()
	open, _ := s.request(s.bob, s.group, mlstest.Change{})
	_, err = s.registry.Commit(t.Context(), s.at, open)
	s.wantRefused("a PublicMessage", err, fault.Unprocessable, "not_private")
	_, err = s.rejoin(mlstest.NewDevice(bobID, time.Now()), s.bob)
	s.wantRefused("an external commit", err, fault.Unprocessable, "not_private")
	_, err = s.send(s.bob, s.group.Leave(s.bob))
	s.wantRefused("a proposal in the open", err, fault.Unprocessable, "not_private")

	if a := s.accept(s.sealed(s.bob, mlstest.Change{})); a.Epoch != 3 {
		t.Errorf("the commit is accepted as %+v", a)
	}
	_, _, err = s.registry.GroupInfo(t.Context(), s.at, bobID)
	if c := s.wantConflict("the GroupInfo that nobody gave", err, "no_group_info"); c.Epoch != 3 {
		t.Errorf("it is said of epoch %d", c.Epoch)
	}
	late, _ := s.request(s.bob, &mlstest.Group{ID: s.group.ID, Epoch: 2, Leaves: s.group.Leaves}, mlstest.Change{})
	_, err = s.registry.Commit(t.Context(), s.at, late)
	if c := s.wantConflict("a commit of the epoch before", err, "epoch_conflict"); len(c.Missing) != 1 {
		t.Errorf("%d commits are missing", len(c.Missing))
	}

	r, next := s.sealed(s.alice, mlstest.Change{Remove: []*mlstest.Device{sam}})
	r.GroupInfo = next.Info(s.alice)
	s.accept(r, next)
	if v := s.view(); v.Mixed || len(v.Members) != 2 {
		t.Errorf("without the member who knows the draft alone it is %+v", v)
	}
	s.commit(s.bob, mlstest.Change{})
}

// The host needs the GroupInfo to check a commit in a PublicMessage. So the conversation stays
// mixed until a commit with a GroupInfo arrives.
func TestAConversationStaysMixedUntilItsGroupInfoIsKnown(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	sam := s.withSam()
	s.accept(s.sealed(s.alice, mlstest.Change{Remove: []*mlstest.Device{sam}}))
	if !s.view().Mixed {
		t.Error("nobody knows the GroupInfo, and the conversation is not mixed")
	}
	r, next := s.sealed(s.bob, mlstest.Change{})
	r.GroupInfo = next.Info(s.bob)
	s.accept(r, next)
	if s.view().Mixed {
		t.Error("the GroupInfo is known, and the conversation is mixed")
	}
	s.commit(s.alice, mlstest.Change{})
}

// The committer declares the actors that a commit in a PrivateMessage adds and removes. The host
// changes the list of members accordingly. It sends the Welcomes to the actors that the key
// packages name.
func TestTheCommitterSaysWhatAPrivateMessageChanges(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.withSam()
	s.takeOwed()
	dave := mlstest.NewDevice(daveID, time.Now())
	r, next := s.sealed(s.bob, mlstest.Change{Add: []*mlstest.Device{dave}})
	s.accept(r, next)
	wantAll := func(what string, want ...string) {
		t.Helper()
		var got []owed
		for _, o := range s.takeOwed() {
			if o.Targets[0] != samID {
				got = append(got, o)
			}
		}
		wantOwed(t, what, got, want...)
	}
	wantAll("an addition", bobID+" Add PrivateMessage", daveID+" Add Welcome")
	if again, err := s.registry.Commit(t.Context(), s.at, r); err != nil || !again.Replayed {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	r.Removed = []vocab.ID{samID}
	_, err := s.registry.Commit(t.Context(), s.at, r)
	s.wantRefused("the same with other words about it", err, fault.Unprocessable, "idempotency_key_reuse")
	s.accept(s.sealed(s.alice, mlstest.Change{Remove: []*mlstest.Device{dave}}))
	wantAll("a removal", bobID+" Add PrivateMessage", daveID+" Add PrivateMessage")
	_, err = s.send(dave, s.group.Message())
	s.wantRefused("a message of who was removed", err, fault.Forbidden, "not_member")
}

func TestWordsAboutAPrivateMessageThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.withSam()
	dave, erin := mlstest.NewDevice(daveID, time.Now()), mlstest.NewDevice(erinID, time.Now())
	known, next := s.sealed(s.alice, mlstest.Change{Add: []*mlstest.Device{dave}})
	known.GroupInfo = next.Info(s.alice)
	s.accept(known, next)
	old := mlstest.NewDeviceUntil(erinID, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	for name, c := range map[string]struct {
		change func(*conversation.Commit)
		kind   fault.Kind
		code   string
	}{
		"a Welcome for nobody":       {func(c *conversation.Commit) { c.Added = nil }, fault.Unprocessable, "bad_welcomes"},
		"no Welcome":                 {func(c *conversation.Commit) { c.Welcomes = nil }, fault.Unprocessable, "bad_welcomes"},
		"a device twice":             {func(c *conversation.Commit) { c.Added = append(c.Added, erin.Package) }, fault.Unprocessable, "bad_welcomes"},
		"a package that was used":    {func(c *conversation.Commit) { c.Added[0], c.Welcomes[0] = dave.Package, s.group.Welcome(dave) }, fault.Unprocessable, "key_package_used"},
		"an old package":             {func(c *conversation.Commit) { c.Added[0] = old.Package }, fault.Invalid, "bad_mls_message"},
		"noise for a package":        {func(c *conversation.Commit) { c.Added[0] = []byte("noise") }, fault.Invalid, "bad_mls_message"},
		"too many":                   {func(c *conversation.Commit) { c.Added = make([][]byte, 65) }, fault.Unprocessable, "too_many_added"},
		"the removal of a stranger":  {func(c *conversation.Commit) { c.Removed = []vocab.ID{carolID} }, fault.Unprocessable, "bad_roster"},
		"one's own removal":          {func(c *conversation.Commit) { c.Removed = []vocab.ID{bobID} }, fault.Unprocessable, "bad_roster"},
		"a removal twice":            {func(c *conversation.Commit) { c.Removed = []vocab.ID{samID, samID} }, fault.Unprocessable, "bad_roster"},
		"who comes and goes":         {func(c *conversation.Commit) { c.Removed = []vocab.ID{erinID} }, fault.Unprocessable, "bad_roster"},
		"no id":                      {func(c *conversation.Commit) { c.Removed = []vocab.ID{"HTTPS://peer.example"} }, fault.Unprocessable, "bad_roster"},
		"the removal of another one": {func(c *conversation.Commit) { c.Removed = []vocab.ID{samID} }, fault.Forbidden, "not_admin"},
		"an external commit":         {func(c *conversation.Commit) { c.External = true }, fault.Unprocessable, "wrong_sender"},
		"the GroupInfo of before":    {func(c *conversation.Commit) { c.GroupInfo = s.group.Info(s.bob) }, fault.Unprocessable, "bad_group_info"},
		"another one's GroupInfo": {func(c *conversation.Commit) {
			_, next := s.group.SealedCommit(mlstest.Change{Add: []*mlstest.Device{erin}})
			c.GroupInfo = next.Info(s.alice)
		}, fault.Unprocessable, "bad_group_info"},
		"a GroupInfo without the device": {func(c *conversation.Commit) {
			_, next := s.group.SealedCommit(mlstest.Change{})
			c.GroupInfo = next.Info(s.bob)
		}, fault.Unprocessable, "bad_group_info"},
		"a GroupInfo with another key of a member": {func(c *conversation.Commit) {
			_, next := s.group.SealedCommit(mlstest.Change{Add: []*mlstest.Device{erin}})
			c.GroupInfo = next.Replace(s.alice, mlstest.NewDevice(aliceID, time.Now())).Info(s.bob)
		}, fault.Unprocessable, "bad_group_info"},
		"a GroupInfo with a stranger's device": {func(c *conversation.Commit) {
			_, next := s.group.SealedCommit(mlstest.Change{Add: []*mlstest.Device{erin, mlstest.NewDevice(carolID, time.Now())}})
			c.GroupInfo = next.Info(s.bob)
		}, fault.Unprocessable, "bad_group_info"},
	} {
		r, _ := s.sealed(s.bob, mlstest.Change{Add: []*mlstest.Device{erin}})
		c.change(&r)
		_, err := s.registry.Commit(t.Context(), s.at, r)
		s.wantRefused(name, err, c.kind, c.code)
	}
	open, _ := s.request(s.bob, s.group, mlstest.Change{})
	open.Added = [][]byte{erin.Package}
	_, err := s.registry.Commit(t.Context(), s.at, open)
	s.wantRefused("words about a PublicMessage", err, fault.Unprocessable, "bad_roster")
	if v := s.view(); v.Epoch != 3 || len(v.Members) != 4 {
		t.Errorf("after what was refused the conversation is %+v", v)
	}
}

// A member who sends a proposal in a PrivateMessage may be removed by others, as after a proposal
// in a PublicMessage. The host cannot read the private proposal.
func TestAPrivateProposalPermitsTheRemovalOfItsSender(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.withSam()
	dave := mlstest.NewDevice(daveID, time.Now())
	s.accept(s.sealed(s.alice, mlstest.Change{Add: []*mlstest.Device{dave}}))
	if _, err := s.send(dave, s.group.PrivateProposal()); err != nil {
		t.Fatal(err)
	}
	if log := s.log(); log[len(log)-1].Kind != user.KindProposal {
		t.Errorf("the proposal is a %s", log[len(log)-1].Kind)
	}
	late := *s.group
	late.Epoch--
	_, err := s.send(dave, late.PrivateProposal())
	s.wantConflict("a proposal of another epoch", err, "past_epoch")
	s.accept(s.sealed(s.bob, mlstest.Change{Remove: []*mlstest.Device{dave}}))
	if v := s.view(); len(v.Members) != 3 {
		t.Errorf("there are %d members", len(v.Members))
	}
}

// After a reset the group has one device, so commits and proposals are PublicMessages again. They
// become PrivateMessages once a member is added whose server knows only the SWICG draft.
func TestAResetEndsWhatWasMixed(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.withSam()
	s.reset()
	if s.view().Mixed {
		t.Error("the new group is mixed with one device in it")
	}
	if _, err := s.rejoin(mlstest.NewDevice(bobID, time.Now())); err != nil {
		t.Error(err)
	}
	s.takeOwed()
	s.withSam()
	wantOwed(t, "who is added anew", s.takeOwed(), samID+" Create Welcome", bobID+" Add PublicMessage")
	info, _, err := s.registry.GroupInfo(t.Context(), s.at, bobID)
	if err != nil {
		t.Fatal(err)
	}
	if g, err := mls.ParseGroupInfo(info); err != nil || !s.view().Mixed || g.Epoch != 2 {
		t.Errorf("then it is %+v, of %+v, %v", s.view(), g, err)
	}
}
