package audience

import "github.com/lightweb/lightweb/engine/vocab"

// Concern says which users a type of activity concerns although it does not address them, and what
// kind of activity that makes it. The handler of the type declares it.
type Concern struct {
	Holders       bool // users who hold something of its actor
	FollowersOnly bool // of these, the followers of its actor alone
	Owner         bool // the owner of what it is about
	PublicOnly    bool // that owner only when it is for everybody: a private one is for those it names
	Circle        bool // the followers of its actor when it names nobody: some servers send it so
	Post          bool // it brings a new post: a private one is not forwarded to others
	Edit          bool // it changes a post: one that is sent to a user's own inbox is for that user
}

// Arrival is an activity that came to this server, and how.
type Arrival struct {
	Activity  *vocab.Activity
	Concern   Concern      // of its type
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

// Reach returns which local users the arrival may concern. Groups are never expanded on the way
// in.
func (a Arrival) Reach() Reach {
	r := Reach{Owners: a.named(), Sender: a.Sender.ID}
	if !a.Relayed {
		r.Owners = append(r.Owners, About(a.Activity, a.Concern)...)
		if a.Inbox != "" && !a.IsLeaked() {
			r.Owners = append(r.Owners, a.Inbox)
		}
	}
	if a.Forwarder != nil && a.Inbox == "" && Names(a.Activity.Addressing, a.Forwarder.Followers) {
		r.Followers = append(r.Followers, a.Forwarder.ID)
	}
	toFollowers := a.isForFollowers()
	letter := a.Concern.Edit && a.Inbox != "" && !toFollowers // its other recipients get it, too
	switch c := a.Concern; {
	case c.Holders && !c.FollowersOnly && !letter:
		r.Acquainted = true
	case c.FollowersOnly, a.Inbox == "" && toFollowers:
		r.Followers = append(r.Followers, a.Sender.ID)
	}
	return r
}

// InPerson returns the users the arrival is meant for in person: its actor sent it to their own
// inbox, or it names them. Where others forward it to is not for them to say.
func (a Arrival) InPerson() []vocab.ID {
	if a.Forwarder == nil && a.Inbox != "" {
		return append(a.Activity.All(), a.Inbox)
	}
	return a.Activity.All()
}

// named returns everybody the activity names. In one user's own inbox hidden names reach no
// others.
func (a Arrival) named() []vocab.ID {
	if a.Inbox == "" {
		return a.Activity.All()
	}
	return Open(a.Activity.Addressing)
}

// isForFollowers reports whether it is for the followers of its actor, which the shared inbox
// stands for.
func (a Arrival) isForFollowers() bool {
	return IsForFollowers(a.Activity, a.Concern, a.Sender.Followers)
}

// IsLeaked reports whether a private post was forwarded to the inbox of a user it does not
// address, nor the followers of its forwarder.
func (a Arrival) IsLeaked() bool {
	post := OfActivity(a.Activity, a.Sender.Followers)
	return a.Forwarder != nil && a.Concern.Post && post.IsPrivate() && !post.Names(a.Forwarder.Followers) && !post.Names(a.Inbox)
}

// IsForFollowers reports whether an activity is for the followers of its actor.
func IsForFollowers(a *vocab.Activity, c Concern, followers vocab.ID) bool {
	to := OfActivity(a, followers)
	return !to.IsPrivate() || c.Circle && to.IsUnaddressed()
}

// About returns what an activity is about, down to the object of an embedded activity, the parent
// of a reply and what is quoted: its local owner is concerned, addressed or not.
func About(a *vocab.Activity, c Concern) []vocab.ID {
	if !c.Owner || c.PublicOnly && !IsPublic(a.Addressing) {
		return nil
	}
	ids := []vocab.ID{a.Object.ID, vocab.QuoteOf(a.Object.Doc)}
	for _, name := range []string{"object", "inReplyTo", "actor"} {
		if r, err := a.Object.Doc.Ref(name); err == nil {
			ids = append(ids, r.ID)
		}
	}
	return ids
}
