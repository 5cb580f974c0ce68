package delivery

import (
	"slices"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Destinations returns the inboxes through which an activity reaches its recipients, each once.
// Followers behind one shared inbox get it there, in one delivery (ActivityPub §7.1.3); a
// recipient who is named and no follower gets it in the personal inbox. owner returns the user of
// a local inbox, who is handed the activity.
func Destinations(followers, named []db.Destination, owner func(vocab.ID) (vocab.Username, bool)) []db.Inbox {
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

// SkipRefused says of those inboxes that the gate refuses why nothing is sent there.
func SkipRefused(g Gate, inboxes []db.Inbox) []db.Inbox {
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

// CheckInbox returns nil when the gate lets an activity go to an inbox on host, and to one of its
// targets at least, where they are known.
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

// MergeInboxes returns the inboxes of both lists, each once. One that is in both has the targets
// of both.
func MergeInboxes(a, b []db.Inbox) []db.Inbox {
	var out inboxes
	for _, i := range slices.Concat(a, b) {
		for _, t := range i.Targets {
			out.add(i.URL, i.Host, t)
		}
	}
	return out.list
}

// inboxes is a list in the order of adding.
type inboxes struct {
	list []db.Inbox
	at   map[vocab.ID]int // by URL
	has  map[owed]bool
}

// owed says that an activity must reach a target through the inbox with this place in the list.
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
		l.list = append(l.list, db.Inbox{URL: url, Host: host})
	}
	if !l.has[owed{i, target}] {
		l.has[owed{i, target}] = true
		l.list[i].Targets = append(l.list[i].Targets, target)
	}
}
