package delivery

import (
	"cmp"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// AddFollowersDigests gives each inbox on another server the digest of all followers whose ids are
// on that server, whichever inbox they have (FEP-8fcf). The parameter followers has all followers
// of the user. An inbox on a server with more than vocab.MaxSynchronized followers gets no digest.
func AddFollowersDigests(inboxes []user.Inbox, followers []user.Destination) {
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

// part is the digest and number of the followers on one server.
type part struct {
	digest vocab.FollowersDigest
	n      int
}

// synchronizationField returns the header field about the followers on the inbox's server, or an
// empty string if the request has no such field. A retry has no such field, because the followers
// may have changed since the digest was made.
func (s *sender) synchronizationField(r *row) string {
	if s.Synchronization == nil || r.Attempts > 0 || r.Instance || len(r.FollowersDigest) != len(vocab.FollowersDigest{}) {
		return ""
	}
	return s.Synchronization(r.user, vocab.FollowersDigest(r.FollowersDigest)).String()
}
