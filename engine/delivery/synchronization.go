package delivery

import (
	"cmp"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// AddFollowersDigests gives each inbox on another server the digest of those followers whose ids
// are of that server, whatever inbox they have (FEP-8fcf). followers are all that the user has. An
// inbox on a server with more than vocab.MaxSynchronized of them gets none.
func AddFollowersDigests(inboxes []db.Inbox, followers []db.Destination) {
	parts := map[string]*part{}
	for _, i := range inboxes {
		if i.Host != "" {
			parts[i.URL.Origin()] = &part{}
		}
	}
	for _, f := range followers {
		if p := parts[f.Actor.Origin()]; p != nil {
			p.digest.Add(cmp.Or(f.Written, string(f.Actor)))
			p.n++
		}
	}
	for n, i := range inboxes {
		if p := parts[i.URL.Origin()]; p != nil && i.Host != "" && p.n <= vocab.MaxSynchronized {
			inboxes[n].FollowersDigest = p.digest[:]
		}
	}
}

// part is the followers on one server.
type part struct {
	digest vocab.FollowersDigest
	n      int
}

// synchronizationField returns the header field about the followers on the inbox's server, empty
// for none. A retry has none: followers have come and gone since.
func (s *sender) synchronizationField(r *row) string {
	if s.Synchronization == nil || r.Attempts > 0 || r.Instance || len(r.FollowersDigest) != len(vocab.FollowersDigest{}) {
		return ""
	}
	return s.Synchronization(r.user, vocab.FollowersDigest(r.FollowersDigest)).String()
}
