package handler

import (
	"slices"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// checkOrigin refuses an activity whose id is not on its actor's server (FEP-fe34). Only a
// server itself can assign ids of its origin.
func checkOrigin(a *vocab.Activity) error {
	if !a.ID.SameOrigin(a.Actor) {
		return fault.New(fault.Invalid, "the id of an activity must be on its actor's server").WithCode("foreign_id").At("/id")
	}
	return nil
}

// checkObject requires an object with an id (ActivityPub §7 lists the activities that need one).
func checkObject(a *vocab.Activity) error {
	if a.Object.ID == "" || a.Object.ID == vocab.Public {
		return fault.New(fault.Invalid, "the activity needs an object with an id").At("/object")
	}
	return nil
}

// checkOwnObject requires an object whose id is on the actor's own server.
func checkOwnObject(a *vocab.Activity) error {
	if err := checkObject(a); err != nil {
		return err
	}
	if !a.Object.ID.SameOrigin(a.Actor) {
		return fault.New(fault.Invalid, "the object must be on its actor's server").WithCode("foreign_object").At("/object/id")
	}
	return nil
}

// checkAuthored refuses an object that is not on the actor's server. It also refuses an embedded
// object that has another author or is no post.
func checkAuthored(a *vocab.Activity) error {
	if err := checkOwnObject(a); err != nil {
		return err
	}
	if a.Object.Doc == nil {
		return nil // the object is fetched from its origin, and checked then
	}
	o, err := vocab.ObjectOf(a.Object.Doc)
	if err != nil {
		return err
	}
	if err := checkOptions(o); err != nil {
		return err
	}
	if !isReadable(o) {
		return fault.New(fault.Invalid, "an object of this type is not taken here").WithCode("wrong_object_type").At("/object/type")
	}
	if o.AttributedTo != "" && (!o.AttributedTo.Same(a.Actor) || !o.OwnAuthors()) {
		return fault.New(fault.Invalid, "the object must be attributed to the actor").WithCode("foreign_object").At("/object/attributedTo")
	}
	return nil
}

// isReadable reports whether o is a post, and not a poll with too many options. An object with the
// type of an encrypted message must not be of the type of a post as well.
func isReadable(o *vocab.Object) bool {
	if o.Doc.Sealed() != "" && !slices.Contains(vocab.SealedSpellings, o.Type) {
		return false
	}
	return !vocab.IsActorType(o.Type) && !slices.Contains(notObjects, o.Type) && checkOptions(o) == nil
}

// notObjects lists the types that are no posts: activities, collections, links, Tombstones,
// Relationships and stamps.
var notObjects = []string{"Create", "Update", "Delete", "Follow", "Accept", "Reject", "Add", "Remove", "Like", "Dislike", "EmojiReact", "Announce",
	"Undo", "Block", "Flag", "Move", "Offer", "Invite", "Arrive", "Travel", "Collection", "OrderedCollection", "CollectionPage", "OrderedCollectionPage",
	"Link", "Mention", "Tombstone", "Relationship", "QuoteRequest", vocab.QuoteAuthorization}

// isAuthor reports whether the actor is the author of a stored object. A Tombstone has no author.
func isAuthor(actor vocab.ID, stored *user.Object) (bool, error) {
	o, err := stored.Parse()
	if err != nil {
		return false, err
	}
	return o.AttributedTo.Same(actor), nil
}
