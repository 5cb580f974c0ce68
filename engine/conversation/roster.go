package conversation

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// addition is a device that a commit adds.
type addition struct {
	actor vocab.ID
	ref   []byte // reference of its key package
	suite mls.CipherSuite
	leaf  *mls.LeafNode
}

// isAt reports whether a device in a ratchet tree is the added one.
func (a addition) isAt(m mls.Member) bool {
	return string(a.actor) == string(m.Identity) && bytes.Equal(a.leaf.SignatureKey, m.SignatureKey)
}

// roster holds the changes that a commit makes to the devices and members of a conversation.
type roster struct {
	added   []addition
	removed []uint32   // leaf indexes
	left    []vocab.ID // actors that have no device left
}

// write changes the members of a conversation. The parameter actors holds the actors that are
// added, except the host.
func (r roster) write(ctx context.Context, tx *user.Tx, c *user.HostedConversation, actors map[vocab.ID]*vocab.Actor, now time.Time) error {
	if len(r.left) > 0 {
		if err := tx.Conversations.Leave(ctx, c.ID, r.left, c.LastSeq); err != nil {
			return err
		}
	}
	if len(r.added) == 0 {
		return nil
	}
	var joined, foreign []vocab.ID
	for _, a := range r.added {
		joined = append(joined, a.actor)
	}
	slices.Sort(joined)
	joined = slices.Compact(joined)
	for _, id := range joined {
		a := actors[id]
		if a == nil {
			continue // actors has no entry for the host
		}
		if err := tx.Actors.Save(ctx, a, now); err != nil {
			return err
		}
		if a.DeliversMLS == 0 {
			foreign = append(foreign, id)
		}
	}
	if err := tx.Conversations.Join(ctx, c.ID, joined, user.RoleMember, c.LastSeq); err != nil || len(foreign) == 0 {
		return err
	}
	return tx.Hosted.NoteForeign(ctx, c.ID, foreign)
}

// findAdded fetches the actors whose devices the commit adds, before the commit is queued. It
// refuses the commit if such an actor cannot be found, because the actor could not be told that
// it is a member. The caller may try again if the actor's server does not answer, or if too many
// requests are under way.
func (c *commit) findAdded(ctx context.Context) error {
	c.actors = map[vocab.ID]*vocab.Actor{}
	for _, id := range c.listAdded() {
		if _, found := c.actors[id]; found || id == c.host || vocab.IDOf(string(id)) != id || id == "" {
			continue // judge refuses invalid ids
		}
		a, err := c.registry.Finder.Refresh(ctx, id)
		if fault.IsPassing(err) {
			return err
		}
		if err != nil {
			return fault.Wrap(fault.Unprocessable, "an actor whose device the commit adds cannot be found: "+fault.Public(err), err).WithCode("actor_unknown").At("/commit")
		}
		c.actors[id] = a
		if len(c.actors) > maxAdded {
			return nil // judge refuses the commit
		}
	}
	return nil
}

// listAdded returns the actors whose devices the commit adds, as far as its proposals or its
// Declared name them.
func (c *commit) listAdded() (actors []vocab.ID) {
	for _, a := range c.declared.added {
		actors = append(actors, a.actor)
	}
	if c.message == nil {
		return actors
	}
	for _, p := range c.message.Proposals {
		if p.Type == mls.ProposalAdd && p.KeyPackage != nil {
			actors = append(actors, vocab.ID(p.KeyPackage.Leaf.Identity))
		}
	}
	return actors
}

// judge returns the changes that the commit makes to the roster, or refuses the commit. The
// GroupInfo of the present epoch proves who sent the commit. The GroupInfo of the next epoch has
// to match the commit.
func (c *commit) judge(ctx context.Context, tx *user.Tx, to *user.HostedConversation, caller *user.ConversationMember) (roster, error) {
	var change roster
	if c.message == nil {
		return c.judgeSealed(ctx, tx, to, caller)
	}
	group, err := mls.ParseGroupInfo(to.GroupInfo)
	if err != nil {
		return change, err
	}
	if err := c.checkSender(group); err != nil {
		return change, err
	}
	if c.External && caller.RejoinedAt != nil {
		if wait := rejoinAfter - c.now.Sub(*caller.RejoinedAt); wait > 0 {
			return change, fault.New(fault.RateLimited, "a device of yours joined again moments ago; wait before the next one does").WithCode("rejoin_cooldown").After(wait)
		}
	}
	if change, err = c.readProposals(group); err != nil {
		return change, err
	}
	if err := c.checkPair(ctx, tx, to, change); err != nil {
		return change, err
	}
	var removed []vocab.ID
	for _, leaf := range change.removed {
		removed = append(removed, vocab.ID(memberAt(group, leaf).Identity))
	}
	if err := c.checkAbsent(ctx, tx, to, group, change); err != nil {
		return change, err
	}
	removed = append(removed, c.declared.left...)
	if err := c.checkRemovals(ctx, tx, to, caller, removed); err != nil {
		return change, err
	}
	if err := c.checkNext(group, change); err != nil {
		return change, err
	}
	if err := c.checkWelcomes(ctx, tx, to, change); err != nil {
		return change, err
	}
	change.left = append(leaving(group, c.next, change.removed), c.declared.left...)
	return change, nil
}

// checkSender refuses a commit that the caller's device did not sign.
func (c *commit) checkSender(group *mls.GroupInfo) error {
	if isExternal := c.message.Sender.Type == mls.SenderNewMemberCommit; isExternal != c.External {
		return unprocessable("wrong_sender", "external commits, and no others, are sent to external-commit").At("/commit")
	}
	if err := c.message.Verify(group); err != nil {
		return badMessage(err, "/commit")
	}
	sender := c.message.Path
	if !c.External {
		sender = &memberAt(group, c.message.Sender.Leaf).LeafNode // not nil, because Verify found it
	}
	if string(sender.Identity) != string(c.Caller) || c.message.Path != nil && string(c.message.Path.Identity) != string(c.Caller) {
		return fault.New(fault.Forbidden, "the commit is of another actor's device").WithCode("wrong_sender").At("/commit")
	}
	return nil
}

func memberAt(group *mls.GroupInfo, leaf uint32) *mls.Member {
	at := slices.IndexFunc(group.Members, func(m mls.Member) bool { return m.Index == leaf })
	if at < 0 {
		return nil
	}
	return &group.Members[at]
}

// checkAbsent checks the actors whose removal is declared beside a PublicMessage. It refuses an
// actor that is not a member, or that has a device in the group before or after the commit.
func (c *commit) checkAbsent(ctx context.Context, tx *user.Tx, to *user.HostedConversation, group *mls.GroupInfo, change roster) error {
	if len(c.declared.left) == 0 {
		return nil
	}
	members, err := tx.Conversations.FindMembers(ctx, to.ID, c.declared.left)
	if err != nil {
		return err
	}
	for _, actor := range c.declared.left {
		isThere := slices.ContainsFunc(group.Members, func(m mls.Member) bool { return string(m.Identity) == string(actor) })
		if m := members[actor]; isThere || change.adds(actor) || m.Actor == "" || !m.IsIn() {
			return badRoster("beside a PublicMessage, removed names members who have no device in the group", "/removed")
		}
	}
	return nil
}

// checkRemovals refuses removals that the caller may not make. Members may remove their own
// devices. They may also remove actors that asked to leave or are no members any more. The admin
// may remove everybody. With an external commit, all callers may remove only their own devices.
func (c *commit) checkRemovals(ctx context.Context, tx *user.Tx, to *user.HostedConversation, caller *user.ConversationMember, removed []vocab.ID) error {
	others := slices.DeleteFunc(removed, func(actor vocab.ID) bool { return actor == c.Caller })
	if len(others) == 0 || caller.Role == user.RoleAdmin && !c.External {
		return nil
	}
	members, err := tx.Conversations.FindMembers(ctx, to.ID, others)
	if err != nil {
		return err
	}
	for _, actor := range others {
		if m := members[actor]; c.External || m.IsIn() && !m.Leaving {
			return fault.New(fault.Forbidden, "members remove devices of their own, and actors who asked to leave").WithCode("not_admin").At("/commit")
		}
	}
	return nil
}

// checkNext refuses a GroupInfo unless it is that of the next epoch, has exactly the devices
// that are in the group after the commit, and is signed by a device of the caller.
func (c *commit) checkNext(group *mls.GroupInfo, change roster) error {
	if !bytes.Equal(c.next.GroupID, group.GroupID) || c.next.Epoch != group.Epoch+1 || c.next.Suite != group.Suite {
		return errOtherInfo
	}
	if err := c.checkInfoSigner(); err != nil {
		return err
	}
	return c.checkTree(group, change)
}

func (c *commit) checkInfoSigner() error {
	signer := memberAt(c.next, c.next.Signer)
	switch {
	case signer == nil || string(signer.Identity) != string(c.Caller):
		return staleInfo("the GroupInfo has no ratchet tree, or was not made by a device of yours")
	case c.next.Verify() != nil:
		return staleInfo("the signature of the GroupInfo does not hold")
	}
	return nil
}

var errOtherInfo = staleInfo("the GroupInfo is not that of the epoch that the commit begins")

func staleInfo(public string) error { return unprocessable("bad_group_info", public).At("/groupInfo") }

// checkTree refuses the ratchet tree of the next epoch unless its leaves are those of the present
// epoch, without the leaves that the commit removes and with those that it adds. The leaves that
// remain keep their signature keys. Only a committer that sends a path may change its key. With
// any other key in the tree, the host could verify nothing that the device signs.
func (c *commit) checkTree(group *mls.GroupInfo, change roster) error {
	wanted := slices.Clone(change.added)
	if c.External {
		wanted = append(wanted, addition{actor: c.Caller, leaf: c.message.Path})
	}
	remaining := 0
	for _, m := range c.next.Members {
		before := memberAt(group, m.Index)
		if before != nil && !slices.Contains(change.removed, m.Index) {
			remaining++
			if !bytes.Equal(before.Identity, m.Identity) {
				return staleInfo("a device in the ratchet tree has become another actor's")
			}
			if !bytes.Equal(c.keyAfter(before), m.SignatureKey) {
				return staleInfo("a device in the ratchet tree has another signature key than the commit leaves it")
			}
			continue
		}
		at := slices.IndexFunc(wanted, func(a addition) bool { return a.isAt(m) })
		if at < 0 {
			return staleInfo("the ratchet tree has a device that the commit does not add")
		}
		wanted = slices.Delete(wanted, at, at+1)
	}
	if len(wanted) > 0 || remaining != len(group.Members)-len(change.removed) {
		return staleInfo("the ratchet tree lacks a device that the commit leaves in the group")
	}
	return nil
}

// keyAfter returns the signature key that a device of the present epoch has after the commit.
func (c *commit) keyAfter(m *mls.Member) []byte {
	if !c.External && c.message.Path != nil && m.Index == c.message.Sender.Leaf {
		return c.message.Path.SignatureKey
	}
	return m.SignatureKey
}

// checkWelcomes refuses the Welcomes unless they name each device that the commit adds exactly
// once, and no other device. The Welcome for a device has to have the suite of the device's key
// package. checkWelcomes also refuses a key package that was used in this conversation before.
func (c *commit) checkWelcomes(ctx context.Context, tx *user.Tx, to *user.HostedConversation, change roster) error {
	refs, copies := [][]byte{}, 0
	for i, w := range c.welcomes {
		refs = append(refs, w.KeyPackages...)
		copies += len(w.KeyPackages) * len(c.Welcomes[i])
	}
	isMissing := func(a addition) bool { return !slices.ContainsFunc(c.welcomes, a.isIn) }
	slices.SortFunc(refs, bytes.Compare)
	if distinct := slices.CompactFunc(slices.Clone(refs), bytes.Equal); len(distinct) != len(refs) || len(refs) != len(change.added) || slices.ContainsFunc(change.added, isMissing) {
		return unprocessable("bad_welcomes", "each device that the commit adds needs one Welcome, of the cipher suite of its key package, and no other does").At("/welcomes")
	}
	if copies > maxCopies {
		return fault.New(fault.TooLarge, "the Welcomes have 8 MiB at most, each counted as often as it has recipients").At("/welcomes")
	}
	if len(refs) == 0 {
		return nil
	}
	used, err := tx.Welcomes.IsWelcomed(ctx, to.ID, refs)
	if err == nil && used {
		err = unprocessable("key_package_used", "a key package was used in this conversation before").At("/commit")
	}
	return err
}

// leaving returns the actors that lose a device by the commit and have none left in the next
// epoch.
func leaving(group, next *mls.GroupInfo, removed []uint32) (left []vocab.ID) {
	for _, leaf := range removed {
		identity := memberAt(group, leaf).Identity
		remains := slices.ContainsFunc(next.Members, func(m mls.Member) bool { return bytes.Equal(m.Identity, identity) })
		if actor := vocab.ID(identity); !remains && !slices.Contains(left, actor) {
			left = append(left, actor)
		}
	}
	return left
}
