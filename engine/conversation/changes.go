package conversation

import (
	"slices"

	"github.com/lightweb/lightweb/engine/mls"
)

// Changes is what a commit does to the devices of a group.
type Changes struct {
	Adds, Removes bool
}

// ReadChanges reads what a commit changes, before it is sent to its conversation, which judges it.
func ReadChanges(commit []byte) (Changes, error) {
	m, err := mls.ParsePublicMessage(commit)
	if err != nil {
		return Changes{}, badMessage(err, "/commit")
	}
	has := func(t mls.ProposalType) bool {
		return slices.ContainsFunc(m.Proposals, func(p mls.Proposal) bool { return p.Type == t })
	}
	return Changes{Adds: has(mls.ProposalAdd), Removes: has(mls.ProposalRemove)}, nil
}
