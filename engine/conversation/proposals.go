package conversation

import (
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxLifetime is the longest lifetime that a key package in a commit may have.
const maxLifetime = 400 * 24 * time.Hour

var errTooManyAdded = unprocessable("too_many_added", "a commit adds 64 devices at most")

// readProposals returns the devices that the proposals of the commit add and remove. Proposals of
// other types and proposals by reference are refused, because the server could not tell their
// effect. Proposals that members have to refuse are refused, too, because no member could apply
// the commit.
func (c *commit) readProposals(group *mls.GroupInfo) (change roster, err error) {
	if c.message.References > 0 {
		return change, badProposal("a commit holds its proposals by value")
	}
	joins := 0
	for _, p := range c.message.Proposals {
		switch {
		case p.Type == mls.ProposalAdd && !c.External:
			a, err := readAddition(p.KeyPackage, c.now)
			if err != nil {
				return change, badMessage(err, "/commit")
			}
			change.added = append(change.added, a)
		case p.Type == mls.ProposalRemove && memberAt(group, p.Removed) != nil && !slices.Contains(change.removed, p.Removed):
			change.removed = append(change.removed, p.Removed)
		case p.Type == mls.ProposalExternalInit && c.External:
			joins++
		default:
			return change, badProposal("a commit adds devices and removes devices that are in the group, and nothing else")
		}
	}
	if len(change.added) > maxAdded {
		return change, errTooManyAdded.At("/commit")
	}
	if c.External {
		err = change.checkExternal(joins)
	} else {
		err = c.checkPath(change)
	}
	if err != nil {
		return change, err
	}
	return change, c.checkDevices(group, change)
}

func badProposal(public string) error { return unprocessable("bad_proposal", public).At("/commit") }

// checkExternal refuses an external commit unless it has one ExternalInit and removes one device
// at most (RFC 9420 §12.2).
func (r roster) checkExternal(joins int) error {
	switch {
	case joins != 1:
		return badProposal("an external commit has one ExternalInit")
	case len(r.removed) > 1:
		return badProposal("an external commit removes one device at most")
	}
	return nil
}

// checkPath refuses a commit that removes the leaf of the member who makes it (RFC 9420 §12.2).
// It also refuses a commit without a path, except a commit that adds devices and removes none
// (§12.4). A device that is removed without a path could still read later messages.
func (c *commit) checkPath(change roster) error {
	switch {
	case slices.Contains(change.removed, c.message.Sender.Leaf):
		return badProposal("a commit does not remove the device that makes it")
	case c.message.Path == nil && (len(change.removed) > 0 || len(change.added) == 0):
		return badProposal("a commit that removes devices, or adds none, has a path")
	}
	return nil
}

// checkDevices refuses a device whose key package is not of the group's suite (RFC 9420 §12.1.1),
// and a device with a key of another device (§7.3). If two members add the same device at once,
// the second member may make such a commit after the first member's commit was accepted.
func (c *commit) checkDevices(group *mls.GroupInfo, change roster) error {
	for _, a := range change.added {
		if a.suite != group.Suite {
			return badProposal("a key package is of another cipher suite than the group")
		}
	}
	fresh := change.leaves()
	if c.message.Path != nil {
		fresh = append(fresh, c.message.Path)
	}
	if isShared(fresh, c.listOthers(group, change)) {
		return badProposal("the commit adds a device twice, or one that is in the group already")
	}
	return nil
}

// listOthers returns the leaf nodes that the commit neither removes nor replaces.
func (c *commit) listOthers(group *mls.GroupInfo, change roster) (leaves []*mls.LeafNode) {
	for i, m := range group.Members {
		isRenewed := !c.External && c.message.Path != nil && m.Index == c.message.Sender.Leaf
		if !isRenewed && !slices.Contains(change.removed, m.Index) {
			leaves = append(leaves, &group.Members[i].LeafNode)
		}
	}
	return leaves
}

// leaves returns the leaves of the added devices.
func (r roster) leaves() (all []*mls.LeafNode) {
	for _, a := range r.added {
		all = append(all, a.leaf)
	}
	return all
}

// isShared reports whether a leaf in fresh shares a key with another leaf in fresh or with a leaf
// in others.
func isShared(fresh, others []*mls.LeafNode) bool {
	for i, leaf := range fresh {
		if slices.ContainsFunc(fresh[:i], leaf.SharesKey) || slices.ContainsFunc(others, leaf.SharesKey) {
			return true
		}
	}
	return false
}

func readAddition(k *mls.KeyPackage, now time.Time) (addition, error) {
	identity := string(k.Leaf.Identity)
	if vocab.IDOf(identity) != vocab.ID(identity) || identity == "" {
		return addition{}, mls.ErrIdentity
	}
	if err := k.Check(identity, now, maxLifetime); err != nil {
		return addition{}, err
	}
	ref, err := k.Reference()
	return addition{vocab.ID(identity), ref, k.Suite, &k.Leaf}, err
}
