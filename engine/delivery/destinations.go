package delivery

import (
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Destinations returns the inboxes through which an activity reaches its recipients, each once.
// Followers with the same shared inbox get the activity there, in one delivery (ActivityPub
// §7.1.3). A recipient who is named and is not a follower gets it in the recipient's personal
// inbox. The function owner returns the user that a local inbox belongs to; the activity is handed
// over to local inboxes without a request.
func Destinations(followers, named []user.Destination, owner func(vocab.ID) (vocab.Username, bool)) []user.Inbox {
	var out inboxes
	covered := map[vocab.ID]bool{}
	for _, d := range followers {
		if _, local := owner(d.Inbox); local {
			out.add(d.Inbox, "", d.Actor)
		} else if d.SharedInbox != "" {
			out.add(d.SharedInbox, d.SharedInbox.Host(), d.Actor)
		} else {
			out.add(d.Inbox, d.Inbox.Host(), d.Actor)
		}
		covered[d.Actor] = true
	}
	for _, d := range named {
		if covered[d.Actor] {
			continue
		}
		covered[d.Actor] = true
		host := d.Inbox.Host()
		if _, local := owner(d.Inbox); local {
			host = ""
		}
		out.add(d.Inbox, host, d.Actor)
	}
	return out.list
}

// SkipRefused sets Skip, the reason why nothing is sent, on those inboxes that the gate refuses.
func SkipRefused(g Gate, inboxes []user.Inbox) []user.Inbox {
	for n, i := range inboxes {
		if i.Host == "" {
			continue
		}
		if err := CheckInbox(g, i.Host, i.Targets); err != nil {
			inboxes[n].Skip = fault.Public(err)
		}
	}
	return inboxes
}

// CheckInbox returns nil when the gate allows the host and at least one of the targets. Without
// targets, only the host counts.
func CheckInbox(g Gate, host string, targets []vocab.ID) error {
	err := g.Check(host)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if err = g.CheckActor(t); err == nil {
			return nil
		}
	}
	return err
}

// MergeInboxes returns the inboxes of both lists, each once. An inbox in both lists has the
// targets of both. An inbox without targets is left out. The results have no Skip and no
// FollowersDigest.
func MergeInboxes(a, b []user.Inbox) []user.Inbox {
	var out inboxes
	for _, i := range slices.Concat(a, b) {
		for _, t := range i.Targets {
			out.add(i.URL, i.Host, t)
		}
	}
	return out.list
}

// inboxes is a list of inboxes in the order in which they were added.
type inboxes struct {
	list []user.Inbox
	at   map[vocab.ID]int // by URL
	has  map[owed]bool
}

// owed is a target that an activity must reach through the inbox at an index of the list.
type owed struct {
	inbox  int
	target vocab.ID
}

func (l *inboxes) add(url vocab.ID, host string, target vocab.ID) {
	if l.at == nil {
		l.at, l.has = map[vocab.ID]int{}, map[owed]bool{}
	}
	key := url.Canonical()
	i, known := l.at[key]
	if !known {
		i = len(l.list)
		l.at[key] = i
		l.list = append(l.list, user.Inbox{URL: url, Host: host})
	}
	if !l.has[owed{i, target}] {
		l.has[owed{i, target}] = true
		l.list[i].Targets = append(l.list[i].Targets, target)
	}
}
