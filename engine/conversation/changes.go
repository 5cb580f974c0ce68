package conversation

import (
	"slices"

	"github.com/lightweb/lightweb/engine/mls"
)

// Changes says whether a commit adds devices to a group, and whether it removes devices or members
// that have no device in the group.
type Changes struct {
	Adds, Removes bool
}

// ReadChanges tells whether a commit adds devices and whether it removes devices or members. The
// changes of a PrivateMessage are those that the committer declares. The result "isReadable" is
// false if the commit cannot be parsed. Then the conversation will refuse the commit.
func ReadChanges(commit Commit) (c Changes, isReadable bool) {
	if isPrivate(commit.Message) {
		return Changes{Adds: len(commit.Added) > 0, Removes: len(commit.Removed) > 0}, true
	}
	m, err := mls.ParsePublicMessage(commit.Message)
	if err != nil {
		return c, false
	}
	has := func(t mls.ProposalType) bool {
		return slices.ContainsFunc(m.Proposals, func(p mls.Proposal) bool { return p.Type == t })
	}
	return Changes{Adds: has(mls.ProposalAdd), Removes: has(mls.ProposalRemove) || len(commit.Removed) > 0}, true
}
