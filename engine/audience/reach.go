package audience

import "github.com/lightweb/lightweb/engine/vocab"

// Concern says which users a type of activity concerns without addressing them. The handler of
// the type declares it.
type Concern struct {
	Holders       bool // it concerns users who have stored something of its actor
	FollowersOnly bool // if Holders is true, it concerns only holders who follow its actor
	Owner         bool // it concerns the owner of the object that it is about
	// PublicOnly says that the activity concerns the owner only if the activity is public.
	// Otherwise it is for the actors that it names.
	PublicOnly bool
	Circle     bool // if it names nobody, it is for the followers of its actor
	Post       bool // it contains a new post; if the post is private, it may not be forwarded to others
	Edit       bool // it changes a post; if the post is private and it came to a user's own inbox, it is for that user alone
}

// Arrival is an activity that was delivered to this server, with the circumstances of the
// delivery.
type Arrival struct {
	Activity  *vocab.Activity
	Concern   Concern      // the Concern of the activity's type
	Sender    *vocab.Actor // the activity's actor
	Forwarder *vocab.Actor // the actor that delivered the activity, if it is not the activity's own actor; else nil
	Inbox     vocab.ID     // the user to whose own inbox it came; empty for the shared inbox
	Relayed   bool         // a relay delivered it; the owners of the objects that it is about get it from its author
}

// Reach describes the local users that an arrival may concern. It may include too many users,
// but never too few.
type Reach struct {
	Owners     []vocab.ID // users who have one of these ids, or own an object that has one
	Followers  []vocab.ID // users who follow one of these actors
	Acquainted bool       // it also concerns users who have stored any object of the sender
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
	// An edit that came to a user's own inbox and is not for followers is for that user alone;
	// others get a delivery of their own.
	letter := a.Concern.Edit && a.Inbox != "" && !toFollowers
	switch c := a.Concern; {
	case c.Holders && !c.FollowersOnly && !letter:
		r.Acquainted = true
	case c.FollowersOnly, a.Inbox == "" && toFollowers:
		r.Followers = append(r.Followers, a.Sender.ID)
	}
	return r
}

// InPerson returns the users that the activity addresses personally: those that it names, and
// the user to whose own inbox its actor delivered it. If another actor forwarded the activity
// to a user's own inbox, the owner of that inbox does not count.
func (a Arrival) InPerson() []vocab.ID {
	if a.Forwarder == nil && a.Inbox != "" {
		return append(a.Activity.All(), a.Inbox)
	}
	return a.Activity.All()
}

// named returns the ids that the activity names. If the activity came to a user's own inbox,
// the ids in bto and bcc are left out, so that it reaches no other users.
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

// About returns the ids that an activity is about: those of its object, of the object and actor
// of an embedded activity, of the parent of a reply and of the quoted post. It returns none if
// the activity does not concern the owners of these ids.
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
