package conversation

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// askReset is the change that begins a reset.
type askReset struct {
	registry     *Registry
	at           Place
	caller, host vocab.ID
	isOperator   bool   // the operator asks; then caller is the host
	group        string // the proposed id; after apply, the id of the next group
	now          time.Time
}

// AskReset begins a reset of a conversation whose members cannot use its MLS group any more, and
// returns the id of the next group. If a reset is pending already, it returns the id of that
// reset's group.
func (r *Registry) AskReset(ctx context.Context, at Place, caller vocab.ID) (string, error) {
	do := &askReset{registry: r, at: at, caller: caller, host: r.Actors.ID(at.Host), group: groupPrefix + uuid.NewString(), now: r.Now()}
	err := r.submit(ctx, at, do)
	return do.group, err
}

// OrderReset does what AskReset does, for the operator, who is not a member. The result "isNew"
// reports whether this call began the reset.
func (r *Registry) OrderReset(ctx context.Context, at Place) (group string, isNew bool, err error) {
	host, proposed := r.Actors.ID(at.Host), groupPrefix+uuid.NewString()
	do := &askReset{registry: r, at: at, caller: host, host: host, isOperator: true, group: proposed, now: r.Now()}
	err = r.submit(ctx, at, do)
	return do.group, do.group == proposed, err
}

func (a *askReset) name() string { return "ask_reset" }

func (a *askReset) askedBy() vocab.ID { return a.caller }

func (a *askReset) answerKey() string { return "" }

func (a *askReset) apply(ctx context.Context, tx *user.Tx, c *user.HostedConversation) error {
	if err := a.checkAsker(ctx, tx, c); err != nil {
		return err
	}
	if c.Status == user.StatusResetPending {
		a.group = c.ResetGroupID
		return nil
	}
	if err := checkActive(c); err != nil {
		return err
	}
	if _, err := tx.Hosted.AskReset(ctx, c.ID, a.group, a.now); err != nil {
		return err
	}
	c.Status, c.ResetGroupID = user.StatusResetPending, a.group
	if err := tx.Events.Add(ctx, newEvent(eventReset, c, a.host, a.caller, vocab.Doc{"groupId": a.group}, a.now)); err != nil {
		return err
	}
	return a.registry.tellState(ctx, tx, a.at, c, a.now)
}

// tellState tells the members the state of a conversation.
func (r *Registry) tellState(ctx context.Context, tx *user.Tx, at Place, c *user.HostedConversation, now time.Time) error {
	f, err := newFanout(ctx, tx, r.Deps, at.Host, c, 0, now)
	if err != nil {
		return err
	}
	return f.tellState(ctx, tx)
}

// checkAsker refuses everybody except an admin of the conversation and the operator.
func (a *askReset) checkAsker(ctx context.Context, tx *user.Tx, c *user.HostedConversation) error {
	if a.isOperator {
		return nil
	}
	member, err := memberOf(ctx, tx, c, a.caller)
	if err == nil && member.Role != user.RoleAdmin {
		err = errNotAdmin
	}
	return err
}

// reset is the change that ends a reset.
type reset struct {
	registry  *Registry
	at        Place
	caller    vocab.ID
	groupInfo []byte
	group     string
	now       time.Time
	accepted  Accepted
}

// Reset begins the next MLS group of a conversation whose reset is pending. The only member of
// that group is a device of the caller. The first member that calls Reset succeeds. A second call
// of that member with the same groupInfo gets the same answer, because the first answer may be
// lost. The other members are refused with a Conflict, and join by external commits or are added.
func (r *Registry) Reset(ctx context.Context, at Place, caller vocab.ID, groupInfo []byte) (Accepted, error) {
	group, err := readNewGroup(groupInfo, caller)
	if err != nil {
		return Accepted{}, err
	}
	do := &reset{registry: r, at: at, caller: caller, groupInfo: groupInfo, group: string(group.GroupID), now: r.Now()}
	err = r.submit(ctx, at, do)
	return r.metrics.countReplay(do.accepted, err)
}

func (s *reset) name() string { return "reset" }

func (s *reset) askedBy() vocab.ID { return s.caller }

func (s *reset) answerKey() string { return keyOf(s.at.ID, s.caller, s.name(), string(s.digest())) }

func (s *reset) digest() []byte { return hashOf(s.groupInfo) }

// isDone reports whether this very reset began the present group of c, and nobody has committed in
// the group since. It holds also when the stored answer is too old to be found.
func (s *reset) isDone(c *user.HostedConversation) bool {
	return len(c.FormerGroups) > 0 && c.Epoch == 0 && s.group == c.GroupID && bytes.Equal(s.groupInfo, c.GroupInfo)
}

func (s *reset) apply(ctx context.Context, tx *user.Tx, c *user.HostedConversation) error {
	if _, err := memberOf(ctx, tx, c, s.caller); err != nil {
		return err
	}
	key := s.answerKey()
	stored, err := storedAnswer(ctx, tx, key, s.digest(), s.now)
	if err != nil {
		return err
	}
	if stored != nil {
		s.accepted = *stored
		return nil
	}
	switch {
	case s.isDone(c):
		s.accepted = Accepted{Seq: c.LastSeq, Generation: c.Generation, Replayed: true}
		return nil
	case s.group == c.GroupID || slices.Contains(c.FormerGroups, s.group):
		return conflictWith(c, "already_reset", "another member has begun the group")
	case c.Status != user.StatusResetPending:
		return conflictWith(c, "no_reset_pending", "no reset of the conversation is pending")
	case s.group != c.ResetGroupID:
		return errWrongGroup
	}
	if err := tx.Hosted.Reset(ctx, *c, s.groupInfo, s.now); err != nil {
		return err
	}
	tx.Hosted.DropAllEarly(c.ID)
	c.Generation, c.Epoch, c.Status, c.GroupInfo = c.Generation+1, 0, user.StatusActive, s.groupInfo
	c.FormerGroups, c.GroupID, c.ResetGroupID, c.Mixed = append(c.FormerGroups, c.GroupID), s.group, "", false
	s.accepted = Accepted{Seq: c.LastSeq, Epoch: 0, Generation: c.Generation}
	d := vocab.Doc{"groupId": c.GroupID, "generation": c.Generation, "epoch": c.Epoch}
	if err := tx.Events.Add(ctx, newEvent(eventBegun, c, s.registry.Actors.ID(s.at.Host), s.caller, d, s.now)); err != nil {
		return err
	}
	if err := s.registry.tellState(ctx, tx, s.at, c, s.now); err != nil {
		return err
	}
	return storeAnswer(tx, key, s.digest(), s.accepted, s.now)
}
