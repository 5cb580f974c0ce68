package conversation

import (
	"bytes"
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Refusals of commits and proposals in a wire format that a conversation does not accept.
var (
	errNotPublic  = unprocessable("commit_not_public", "a commit is a PublicMessage, so that the server can tell what it changes").At("/commit")
	errNotPrivate = unprocessable("not_private", "a member knows the SWICG draft alone: commits and proposals are PrivateMessages, and a device that has lost its state is removed and added anew")
)

// checkFraming refuses PublicMessages in a mixed conversation, where some members cannot read
// them. In other conversations it refuses commits in PrivateMessages, which the server cannot
// read.
func checkFraming(c *user.HostedConversation, isPrivate bool) error {
	switch {
	case c.Mixed && !isPrivate:
		return errNotPrivate
	case !c.Mixed && isPrivate:
		return errNotPublic
	}
	return nil
}

// readDeclared reads and checks the changes that the committer declares for a PrivateMessage.
func (c *commit) readDeclared() error {
	switch {
	case c.External:
		return unprocessable("wrong_sender", "an external commit is a PublicMessage").At("/commit")
	case len(c.Added) > maxAdded:
		return errTooManyAdded.At("/added")
	}
	for _, content := range c.Added {
		if len(content) > maxKeyPackage {
			return fault.New(fault.TooLarge, "a key package has 16 KiB at most").At("/added")
		}
		k, err := mls.ParseKeyPackage(content)
		if err != nil {
			return badMessage(err, "/added")
		}
		a, err := readAddition(k, c.now)
		if err != nil {
			return badMessage(err, "/added")
		}
		c.declared.added = append(c.declared.added, a)
	}
	return c.readRemoved()
}

// readRemoved reads and checks the actors that the committer declares as removed.
func (c *commit) readRemoved() error {
	if len(c.Removed) > mls.MaxMembers {
		return badRoster("removed names 256 actors at most", "/removed")
	}
	for _, id := range c.Removed {
		switch {
		case vocab.IDOf(string(id)) != id || id == "":
			return badRoster("removed names actors by their ids", "/removed")
		case id == c.Caller || c.declared.adds(id) || slices.Contains(c.declared.left, id):
			return badRoster("removed names each other actor once who has no device left", "/removed")
		}
		c.declared.left = append(c.declared.left, id)
	}
	return nil
}

func badRoster(public, pointer string) error { return unprocessable("bad_roster", public).At(pointer) }

// judgeSealed does what judge does, for a PrivateMessage. The host can read only the group, epoch
// and type of the message, so it checks the declared changes. The members check that the message
// makes these changes.
func (c *commit) judgeSealed(ctx context.Context, tx *user.Tx, to *user.HostedConversation, caller *user.ConversationMember) (roster, error) {
	change := c.declared
	if err := c.checkPair(ctx, tx, to, change); err != nil {
		return change, err
	}
	members, err := tx.Conversations.ListMembers(ctx, to.ID)
	if err != nil {
		return change, err
	}
	isMember := func(actor vocab.ID) bool {
		return slices.ContainsFunc(members, func(m user.ConversationMember) bool { return m.Actor == actor })
	}
	for _, actor := range change.left {
		if !isMember(actor) {
			return change, badRoster("removed names members", "/removed")
		}
	}
	if err := c.checkRemovals(ctx, tx, to, caller, change.left); err != nil {
		return change, err
	}
	if err := c.checkSealedInfo(to, change, isMember); err != nil {
		return change, err
	}
	if err := c.checkWelcomes(ctx, tx, to, change); err != nil {
		return change, err
	}
	if isShared(change.leaves(), nil) {
		return change, badRoster("the commit adds a device twice", "/added")
	}
	return change, nil
}

// checkSealedInfo refuses a GroupInfo that is not of the next epoch, lacks an added device, or
// has a device of an actor that is not a member after the commit. If the GroupInfo of the present
// epoch is known, checkSealedInfo also refuses a device of another member that the commit does
// not add and that was not in the group in that epoch.
func (c *commit) checkSealedInfo(to *user.HostedConversation, change roster, isMember func(vocab.ID) bool) error {
	if c.next == nil {
		return nil
	}
	for _, a := range change.added {
		if a.suite != c.next.Suite {
			return badRoster("a key package is of another cipher suite than the group", "/added")
		}
	}
	if string(c.next.GroupID) != to.GroupID || c.next.Epoch != uint64(to.Epoch)+1 {
		return errOtherInfo
	}
	if err := c.checkInfoSigner(); err != nil {
		return err
	}
	var group *mls.GroupInfo
	if len(to.GroupInfo) > 0 {
		var err error
		if group, err = mls.ParseGroupInfo(to.GroupInfo); err != nil {
			return err
		}
	}
	wanted := slices.Clone(change.added)
	for _, m := range c.next.Members {
		actor := vocab.ID(m.Identity)
		if at := slices.IndexFunc(wanted, func(a addition) bool { return a.isAt(m) }); at >= 0 {
			wanted = slices.Delete(wanted, at, at+1)
		} else if slices.ContainsFunc(change.leaves(), m.SharesKey) {
			return badRoster("the commit adds a device that is in the group already", "/added")
		} else if !isMember(actor) || slices.Contains(change.left, actor) {
			return staleInfo("the ratchet tree has a device of an actor who is no member after the commit")
		} else if group != nil && actor != c.Caller && !isIn(group, m) {
			return staleInfo("the ratchet tree has a device of another member that the commit does not add")
		}
	}
	if len(wanted) > 0 {
		return staleInfo("the ratchet tree lacks a device that the commit adds")
	}
	return nil
}

// isIn reports whether a group has the device of m at the same leaf with the same signature key.
func isIn(group *mls.GroupInfo, m mls.Member) bool {
	there := memberAt(group, m.Index)
	return there != nil && bytes.Equal(there.Identity, m.Identity) && bytes.Equal(there.SignatureKey, m.SignatureKey)
}

// isMixedAfter reports whether an actor that knows only the SWICG draft may be in the MLS group
// after a commit. A conversation stays mixed if the commit has no GroupInfo, because the next
// PublicMessage could not be checked without one.
func (c *commit) isMixedAfter(ctx context.Context, tx *user.Tx, to *user.HostedConversation, change roster) (bool, error) {
	for _, a := range change.added {
		if actor := c.actors[a.actor]; actor != nil && actor.DeliversMLS == 0 {
			return true, nil
		}
	}
	if !to.Mixed || c.next == nil {
		return to.Mixed, nil
	}
	return tx.Hosted.HasForeign(ctx, to.ID, change.left)
}
