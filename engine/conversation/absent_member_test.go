package conversation_test

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// removing returns a commit by a device, and the group after the commit. The commit removes the
// members in absent by their ids, because these members have no device in the group.
func (s *scene) removing(by *mlstest.Device, c mlstest.Change, absent ...vocab.ID) (conversation.Commit, *mlstest.Group) {
	r, next := s.request(by, s.group, c)
	r.Removed = absent
	return r, next
}

// After a reset, a member who has not joined again has no device in the group. A Remove proposal
// cannot name such a member, so the commit names the member's id.
func TestAMemberWithoutADeviceIsRemovedByItsID(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	carol := mlstest.NewDevice(carolID, time.Now())
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{carol}})
	if _, err := s.send(carol, s.group.Leave(carol)); err != nil {
		t.Fatal(err)
	}
	s.reset()
	s.takeOwed()
	r, next := s.removing(s.alice, mlstest.Change{}, bobID)
	s.accept(r, next)
	if v := s.view(); len(v.Members) != 2 {
		t.Errorf("the members are %+v", v.Members)
	}
	if changes, is := conversation.ReadChanges(r); !is || !changes.Removes {
		t.Errorf("the commit is said to be %+v", changes)
	}
	_, err := s.rejoin(mlstest.NewDevice(bobID, time.Now()))
	s.wantRefused("an external commit", err, fault.Forbidden, "not_member")
	_, _, err = s.registry.ReadLog(t.Context(), s.at, bobID, 0)
	s.wantRefused("log", err, fault.Forbidden, "not_member")
	wantOwed(t, "the removal", s.takeOwed(), bobID+" Add PublicMessage", carolID+" Add PublicMessage")
	if again, err := s.registry.Commit(t.Context(), s.at, r); err != nil || !again.Replayed {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	r.Removed = nil
	_, err = s.registry.Commit(t.Context(), s.at, r)
	s.wantRefused("the same that removes nobody", err, fault.Unprocessable, "idempotency_key_reuse")

	dave := mlstest.NewDevice(daveID, time.Now())
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{dave}})
	s.accept(s.removing(dave, mlstest.Change{}, carolID)) // permitted to dave, because carol asked to be removed
	if v := s.view(); len(v.Members) != 2 || v.Members[0].Actor != aliceID || v.Members[1].Actor != daveID {
		t.Errorf("the members are %+v", v.Members)
	}
}

func TestTheIDsOfMembersWhoAreRemovedHaveToFit(t *testing.T) {
	t.Parallel()
	s := newScene(t).withBob()
	carol, dave := mlstest.NewDevice(carolID, time.Now()), mlstest.NewDevice(daveID, time.Now())
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{carol}})
	s.reset()
	s.commit(s.alice, mlstest.Change{Add: []*mlstest.Device{dave}})
	for name, c := range map[string]struct {
		by     *mlstest.Device
		change mlstest.Change
		absent []vocab.ID
		kind   fault.Kind
		code   string
	}{
		"by a member":                  {dave, mlstest.Change{}, []vocab.ID{bobID}, fault.Forbidden, "not_admin"},
		"a member who has a device":    {s.alice, mlstest.Change{}, []vocab.ID{daveID}, fault.Unprocessable, "bad_roster"},
		"whose device it removes":      {s.alice, mlstest.Change{Remove: []*mlstest.Device{dave}}, []vocab.ID{daveID}, fault.Unprocessable, "bad_roster"},
		"whose device it adds":         {s.alice, mlstest.Change{Add: []*mlstest.Device{mlstest.NewDevice(bobID, time.Now())}}, []vocab.ID{bobID}, fault.Unprocessable, "bad_roster"},
		"a stranger":                   {s.alice, mlstest.Change{}, []vocab.ID{erinID}, fault.Unprocessable, "bad_roster"},
		"the committer":                {s.alice, mlstest.Change{}, []vocab.ID{aliceID}, fault.Unprocessable, "bad_roster"},
		"a member twice":               {s.alice, mlstest.Change{}, []vocab.ID{bobID, bobID}, fault.Unprocessable, "bad_roster"},
		"what is no id":                {s.alice, mlstest.Change{}, []vocab.ID{"HTTPS://peer.example"}, fault.Unprocessable, "bad_roster"},
		"one of two that is there not": {s.alice, mlstest.Change{}, []vocab.ID{bobID, daveID}, fault.Unprocessable, "bad_roster"},
	} {
		r, _ := s.removing(c.by, c.change, c.absent...)
		_, err := s.registry.Commit(t.Context(), s.at, r)
		s.wantRefused(name, err, c.kind, c.code)
	}
	again := mlstest.NewDevice(bobID, time.Now())
	message, next := s.group.Rejoin(again)
	_, err := s.registry.Commit(t.Context(), s.at, conversation.Commit{Caller: bobID, Key: s.key(), Message: message, GroupInfo: next.Info(again), External: true,
		Declared: conversation.Declared{Removed: []vocab.ID{carolID}}})
	s.wantRefused("by an external commit", err, fault.Forbidden, "not_admin")
	if v := s.view(); len(v.Members) != 4 {
		t.Errorf("the members are %+v", v.Members)
	}
}
