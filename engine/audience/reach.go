package audience

import "github.com/lightweb/lightweb/engine/vocab"

// Concern says which users a type of activity concerns without addressing them. The handler of
// the type declares it.
type Concern struct {
	Holders       bool // it concerns users who hold something of its actor
	FollowersOnly bool // of the holders, only the followers of its actor
	Owner         bool // it concerns the owner of the object that it is about
	PublicOnly    bool // the owner only if it is public: a private one is for those it names
	Circle        bool // if it names nobody, it is for the followers of its actor
	Post          bool // it contains a new post: a private one may not be forwarded to others
	Edit          bool // it changes a post: a private one in a user's own inbox is for that user
}

// Arrival is an activity that was delivered to this server, with the circumstances of the
// delivery.
type Arrival struct {
	Activity  *vocab.Activity
	Concern   Concern      // the Concern of its type
	Sender    *vocab.Actor // its actor
	Forwarder *vocab.Actor // the actor that delivered it, if not its actor; else nil
	Inbox     vocab.ID     // the user to whose own inbox it came; empty for the shared inbox
	Relayed   bool         // a relay delivered it: users it only concerns get it from its author
}

// Reach describes the local users that an arrival may concern. It may include too many users,
// but never too few.
type Reach struct {
	Owners     []vocab.ID // users with one of these ids, and owners of objects with one
	Followers  []vocab.ID // users who follow one of these actors
	Acquainted bool       // users who hold any object of the sender
	Sender     vocab.ID
}

// Reach returns the local users that the arrival may concern. Groups in the addressing of
// received activities are not expanded.
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
	letter := a.Concern.Edit && a.Inbox != "" && !toFollowers // others get a delivery of their own
	switch c := a.Concern; {
	case c.Holders && !c.FollowersOnly && !letter:
		r.Acquainted = true
	case c.FollowersOnly, a.Inbox == "" && toFollowers:
		r.Followers = append(r.Followers, a.Sender.ID)
	}
	return r
}

// InPerson returns the users that the activity addresses personally: those that it names, and
// the user to whose own inbox its actor delivered it. The inbox to which another actor forwarded
// it does not count.
func (a Arrival) InPerson() []vocab.ID {
	if a.Forwarder == nil && a.Inbox != "" {
		return append(a.Activity.All(), a.Inbox)
	}
	return a.Activity.All()
}

// named returns the ids that the activity names. If it came to a user's own inbox, bto and bcc
// are left out, so that they reach no other users.
func (a Arrival) named() []vocab.ID {
	if a.Inbox == "" {
		return a.Activity.All()
	}
	return Open(a.Activity.Addressing)
}

// isForFollowers reports whether the arrival is for its actor's followers. They get it through
// the shared inbox.
func (a Arrival) isForFollowers() bool {
	return IsForFollowers(a.Activity, a.Concern, a.Sender.Followers)
}

// IsLeaked reports whether a private post was forwarded to the own inbox of a user, although it
// addresses neither that user nor the followers of the forwarder.
func (a Arrival) IsLeaked() bool {
	post := OfActivity(a.Activity, a.Sender.Followers)
	return a.Forwarder != nil && a.Concern.Post && post.IsPrivate() && !post.Names(a.Forwarder.Followers) && !post.Names(a.Inbox)
}

// IsForFollowers reports whether an activity is for the followers of its actor.
func IsForFollowers(a *vocab.Activity, c Concern, followers vocab.ID) bool {
	to := OfActivity(a, followers)
	return !to.IsPrivate() || c.Circle && to.IsUnaddressed()
}

// About returns the ids that an activity is about: its object, the object and actor of an
// embedded activity, the parent of a reply and the quoted post. Their local owners are concerned
// even if they are not addressed.
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
