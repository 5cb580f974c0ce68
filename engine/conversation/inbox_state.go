package conversation

import (
	"context"
	"math"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// stateSaid is the state of a conversation that its host sent.
type stateSaid struct {
	status, group, reset string
	generation           int32
	epoch, lastSeq       int64
	roster               *rosterSaid
}

// CheckState refuses the state of a conversation if it is malformed or does not come from the
// host.
func CheckState(a *vocab.Activity) error {
	_, err := readState(a)
	return err
}

func readState(a *vocab.Activity) (*stateSaid, error) {
	if !IsHosted(a.Object.ID, a.Actor) {
		return nil, fault.New(fault.Forbidden, "only its host tells the state of a conversation").WithCode("not_host").At("/object/id")
	}
	d := a.Object.Doc.Sub("lwMetadata")
	s := &stateSaid{status: d.Text("status"), group: d.Text("mlsGroupId"), reset: d.Text("resetGroupId")}
	switch {
	case s.status != user.StatusActive && s.status != user.StatusClosed && s.status != user.StatusResetPending:
		return nil, badLabel("bad_state", "a conversation is active, reset_pending or closed", "/object/lwMetadata/status")
	case (s.status == user.StatusResetPending) != (s.reset != ""):
		return nil, badLabel("bad_state", "a pending reset names the group that comes next, and nothing else does", "/object/lwMetadata/resetGroupId")
	case s.group == "", s.group != groupName([]byte(s.group)), s.reset != groupName([]byte(s.reset)):
		return nil, badLabel("wrong_group", "a conversation has an MLS group", "/object/lwMetadata/mlsGroupId")
	}
	var generation int64
	for name, into := range map[string]*int64{"mlsGeneration": &generation, "mlsEpoch": &s.epoch, "lastSeq": &s.lastSeq} {
		n, has := d.Count(name)
		if !has || n < 0 || n > maxSeq {
			return nil, badLabel("bad_state", name+" is a number", "/object/lwMetadata/"+name)
		}
		*into = n
	}
	if generation > math.MaxInt32 {
		return nil, badLabel("bad_generation", "a generation is a number", "/object/lwMetadata/mlsGeneration")
	}
	s.generation = int32(generation)
	var err error
	s.roster, err = readRoster(d)
	return s, err
}

// ReceiveState stores the state of a conversation that its host sent. A state that is older than
// the stored one changes nothing.
func ReceiveState(ctx context.Context, tx *user.Tx, a Arrival) (Outcome, error) {
	s, err := readState(a.Activity)
	if err != nil {
		return Outcome{}, err
	}
	if err := tx.Messages.Lock(ctx); err != nil {
		return Outcome{}, err
	}
	j, err := tx.Joined.FindAt(ctx, a.Activity.Object.ID)
	switch {
	case err != nil:
		return Outcome{}, err
	case j == nil:
		return refused(UnknownGroup)
	case j.Status == user.StatusFrozen:
		return refused(FrozenCopy)
	case s.generation < j.Generation, s.lastSeq < j.RosterSeq:
		return refused(OutdatedMessage)
	}
	if fits, err := s.fits(ctx, tx, j); err != nil || !fits {
		return Outcome{Reason: WrongGroup}, err
	}
	r := &receiver{tx: tx, Arrival: a, conversation: j,
		entry: &entry{group: s.group, generation: s.generation, epoch: s.epoch, seq: s.lastSeq, roster: s.roster, sender: a.Sender.ID, object: a.Activity.Object.ID}}
	before, generation := j.Status, j.Generation
	r.advance(j)
	setStatus(j, s.status, s.reset)
	if err := r.saveState(ctx); err != nil {
		return Outcome{Kept: true}, err
	}
	switch {
	case s.status == user.StatusClosed:
		err = tx.Conversations.Close(ctx, j.ID, j.Host, a.Now, a.Tells)
	case s.status == user.StatusResetPending && (j.Status != before || s.generation > generation):
		err = r.tell(ctx, eventReset, vocab.Doc{"groupId": s.reset})
	case j.Status == user.StatusActive && s.generation > generation:
		err = r.tell(ctx, eventBegun, vocab.Doc{"groupId": j.GroupID, "generation": j.Generation, "epoch": j.Epoch})
	}
	return Outcome{Kept: true}, err
}

// fits reports whether the MLS groups in the state may belong to this conversation. It returns
// false if one of them belongs to another conversation that the user hosts or has confirmed. It
// also returns false if the group of the present generation differs from the stored one, or if a
// further reset would exceed maxFormer.
func (s *stateSaid) fits(ctx context.Context, tx *user.Tx, j *user.JoinedConversation) (bool, error) {
	if s.generation == j.Generation && s.group != j.GroupID || s.generation > j.Generation && len(j.FormerGroups) >= maxFormer {
		return false, nil
	}
	for _, group := range []string{s.group, s.reset} {
		if group == "" || group == j.GroupID {
			continue
		}
		if taken, err := tx.Joined.IsGroupTaken(ctx, group); err != nil || taken {
			return false, err
		}
	}
	return true, nil
}
