package audience

import (
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// spread are the activities that concern whoever holds something of their actor, addressed or not.
var spread = []string{"Update", "Delete", "Undo", "Move", "Block", "Add", "Remove"}

// concerning are the activities that concern the local owner of what they are about, addressed or not. A post concerns the
// owner of what it answers only when it is for everybody: a private one is for those it names.
var concerning = []string{"Follow", "Accept", "Reject", "Undo", "Block", "Like", "Dislike", "Announce", "Create"}

// Spreads reports whether activities of a type concern everybody who holds something of their actor.
func Spreads(activity string) bool { return slices.Contains(spread, activity) }

// Arrival is an activity that came to this server, and how.
type Arrival struct {
	Activity  *vocab.Activity
	Sender    *vocab.Actor // its actor
	Forwarder *vocab.Actor // who sent it, when that is not its actor; else nil
	Inbox     vocab.ID     // the actor of the user whose own inbox it came to; empty: it came to the shared one
	Relayed   bool         // a relay sent it: users it merely concerns get it from its author
}

// Reach says which local users an arrival may concern: it may say too many, never too few.
type Reach struct {
	Owners     []vocab.ID // users who are one of these, or own it
	Followers  []vocab.ID // users who follow one of these actors
	Acquainted bool       // users who hold anything of the sender
	Sender     vocab.ID
}

// Reach returns which local users the arrival may concern. Groups are never expanded on the way in.
func (a Arrival) Reach() Reach {
	r := Reach{Owners: a.named(), Sender: a.Sender.ID}
	if !a.Relayed {
		r.Owners = append(r.Owners, About(a.Activity)...)
		if a.Inbox != "" && !a.IsLeaked() {
			r.Owners = append(r.Owners, a.Inbox)
		}
	}
	if a.Forwarder != nil && a.Inbox == "" && Names(a.Activity.Addressing, a.Forwarder.Followers) {
		r.Followers = append(r.Followers, a.Forwarder.ID)
	}
	toFollowers := a.isForFollowers()
	letter := a.Activity.Type == "Update" && a.Inbox != "" && !toFollowers // its other recipients get it, too
	switch kind := a.Activity.Type; {
	case kind != "Move" && Spreads(kind) && !letter:
		r.Acquainted = true
	case kind == "Move", a.Inbox == "" && toFollowers: // a follow is all that moves
		r.Followers = append(r.Followers, a.Sender.ID)
	}
	return r
}

// InPerson returns the users the arrival is meant for in person: its actor sent it to their own inbox, or it names them.
// Where others forward it to is not for them to say.
func (a Arrival) InPerson() []vocab.ID {
	if a.Forwarder == nil && a.Inbox != "" {
		return append(a.Activity.All(), a.Inbox)
	}
	return a.Activity.All()
}

// named returns everybody the activity names. In one user's own inbox hidden names reach no others.
func (a Arrival) named() []vocab.ID {
	if a.Inbox == "" {
		return a.Activity.All()
	}
	return Open(a.Activity.Addressing)
}

// isForFollowers reports whether it is for the followers of its actor, which the shared inbox stands for.
func (a Arrival) isForFollowers() bool { return IsForFollowers(a.Activity, a.Sender.Followers) }

// IsLeaked reports whether a private post was forwarded to the inbox of a user it does not address, nor the followers
// of its forwarder.
func (a Arrival) IsLeaked() bool {
	post := OfActivity(a.Activity, a.Sender.Followers)
	return a.Forwarder != nil && a.Activity.Type == "Create" && post.IsPrivate() && !post.Names(a.Forwarder.Followers) && !post.Names(a.Inbox)
}

// IsForFollowers reports whether an activity is for those who follow its actor. A boost that names nobody is: some servers
// send it to those who follow.
func IsForFollowers(a *vocab.Activity, followers vocab.ID) bool {
	to := OfActivity(a, followers)
	return !to.IsPrivate() || a.Type == "Announce" && to.IsUnaddressed()
}

// About returns what an activity is about, down to the object of an embedded activity and the parent of a reply: its local
// owner is concerned, addressed or not.
func About(a *vocab.Activity) []vocab.ID {
	if !slices.Contains(concerning, a.Type) || a.Type == "Create" && !IsPublic(a.Addressing) {
		return nil
	}
	ids := []vocab.ID{a.Object.ID}
	for _, name := range []string{"object", "inReplyTo", "actor"} {
		if r, err := a.Object.Doc.Ref(name); err == nil {
			ids = append(ids, r.ID)
		}
	}
	return ids
}
