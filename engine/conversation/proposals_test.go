package conversation_test

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// By RFC 9420 §7.3, §12.1.1, §12.2 and §12.4, members must refuse these commits. If the host
// accepted one, the epoch would end and no member could make the next commit.
func TestACommitThatMembersHaveToRefuseIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	now := time.Now()
	phone, bobs := mlstest.NewDevice(aliceID, now), mlstest.NewDevice(bobID, now)
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{phone, bobs}})
	other := mlstest.NewDevice(carolID, now)
	for name, c := range map[string]mlstest.Change{
		"a device that is there, by another key package": {Add: []*mlstest.Device{s.bob.Again(now)}},
		"the committer's own device once more":           {Add: []*mlstest.Device{s.alice.Again(now)}},
		"a device twice, by two key packages":            {Add: []*mlstest.Device{other, other.Again(now)}},
		"a key package of another suite":                 {Add: []*mlstest.Device{mlstest.NewDeviceOfOtherSuite(carolID, now)}},
	} {
		r, _ := s.request(s.alice, s.group, c)
		_, err := s.registry.Commit(t.Context(), s.at, r)
		s.wantRefused(name, err, fault.Unprocessable, "bad_proposal")
	}
	for name, c := range map[string]mlstest.Change{
		"a removal without a path":               {Remove: []*mlstest.Device{s.bob}},
		"a removal and an Add without a path":    {Add: []*mlstest.Device{other}, Remove: []*mlstest.Device{s.bob}},
		"no proposal, and no path that does any": {},
	} {
		r, _ := s.request(s.alice, s.group, c)
		r.Message, _ = s.group.CommitWithoutPath(s.alice, c)
		_, err := s.registry.Commit(t.Context(), s.at, r)
		s.wantRefused(name, err, fault.Unprocessable, "bad_proposal")
	}
	own := mlstest.Change{Remove: []*mlstest.Device{s.alice}}
	r, _ := s.request(phone, s.group, own)
	r.Message, _ = s.group.Commit(s.alice, own)
	_, err := s.registry.Commit(t.Context(), s.at, r)
	s.wantRefused("the committer removes itself", err, fault.Unprocessable, "bad_proposal")
	path, next := s.group.CommitPath(s.alice, phone.Again(now))
	_, err = s.registry.Commit(t.Context(), s.at, conversation.Commit{Caller: aliceID, Key: s.key(), Message: path, GroupInfo: next.Info(phone)})
	s.wantRefused("the committer takes the key of another device", err, fault.Unprocessable, "bad_proposal")
	_, err = s.rejoin(s.bob.Again(now))
	s.wantRefused("a device joins again and stays", err, fault.Unprocessable, "bad_proposal")
	_, err = s.rejoin(mlstest.NewDevice(bobID, now), s.bob, bobs)
	s.wantRefused("a device joins and removes two", err, fault.Unprocessable, "bad_proposal")
	if v := s.view(); v.Epoch != 2 || len(v.Members) != 2 {
		t.Errorf("epoch %d with %d members, want 2 with 2", v.Epoch, len(v.Members))
	}

	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{s.bob.Again(now)}, Remove: []*mlstest.Device{s.bob}})
	if _, err := s.rejoin(bobs.Again(now), bobs); err != nil {
		t.Errorf("a device that takes its own place: %v", err)
	}
}

// The host cannot read a commit in a PrivateMessage. It checks the changes that the committer
// declares instead.
func TestADeclaredDeviceThatMembersHaveToRefuseIsRefused(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	s.withSam()
	now := time.Now()
	other := mlstest.NewDevice(carolID, now)
	for name, added := range map[string][]*mlstest.Device{
		"a device that is there, by another key package": {s.bob.Again(now)},
		"a device twice, by two key packages":            {other, other.Again(now)},
		"a key package of another suite":                 {mlstest.NewDeviceOfOtherSuite(carolID, now)},
	} {
		r, next := s.sealed(s.alice, mlstest.Change{Add: added})
		r.GroupInfo = next.Info(s.alice)
		_, err := s.registry.Commit(t.Context(), s.at, r)
		s.wantRefused(name, err, fault.Unprocessable, "bad_roster")
	}
	s.accept(s.sealed(s.alice, mlstest.Change{}))
	r, _ := s.sealed(s.alice, mlstest.Change{Add: []*mlstest.Device{mlstest.NewDeviceOfOtherSuite(carolID, now)}})
	_, err := s.registry.Commit(t.Context(), s.at, r)
	s.wantRefused("a key package of another suite than the Welcome's", err, fault.Unprocessable, "bad_welcomes")
	r, next := s.sealed(s.alice, mlstest.Change{Add: []*mlstest.Device{s.bob.Again(now)}, Remove: []*mlstest.Device{s.bob}})
	r.GroupInfo, r.Removed = next.Info(s.alice), []vocab.ID{}
	s.accept(r, next)
}
