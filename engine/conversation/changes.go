package conversation

import (
	"slices"

	"github.com/lightweb/lightweb/engine/mls"
)

// Changes is what a commit does to the devices of a group.
type Changes struct {
	Adds, Removes bool
}

// ReadChanges reads what a commit changes. One that is not readable the conversation refuses.
func ReadChanges(commit []byte) (c Changes, isReadable bool) {
	m, err := mls.ParsePublicMessage(commit)
	if err != nil {
		return c, false
	}
	has := func(t mls.ProposalType) bool {
		return slices.ContainsFunc(m.Proposals, func(p mls.Proposal) bool { return p.Type == t })
	}
	return Changes{Adds: has(mls.ProposalAdd), Removes: has(mls.ProposalRemove)}, true
}
