package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// about is the common parameter of actions that are about one object.
type about struct {
	ObjectID string `json:"objectId" schema:"id"`
}

func (p *about) checkParams() error {
	_, err := parseIdentifier("objectId", p.ObjectID)
	return err
}

func (p *about) lockName() string { return handler.LockName(vocab.IDOf(p.ObjectID)) }

// like tells the author of an object, and the communities that the object belongs to, that the
// user likes the object (ActivityPub §6.8).
type like struct {
	about
	object vocab.ID
}

func (p *like) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	obj, author, err := f.findObject(ctx, x, "objectId", p.ObjectID)
	if err != nil {
		return err
	}
	p.ObjectID, p.object = string(obj.ID), obj.ID
	x.to = []vocab.ID{author.ID}
	x.addNamed(author)
	return f.addressCommunities(ctx, x, audience.OfObject(obj, author.Followers).Communities())
}

func (p *like) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Like, string(p.object)
}

func (p *like) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	return readReaction(ctx, tx, p.object, user.Review, vocab.Like, x.actor.ID)
}

// dislike tells the author of an object that the user dislikes the object. The object must have a
// type that can be disliked. A Dislike replaces the user's Like.
type dislike struct{ like }

func (p *dislike) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Dislike, string(p.object)
}

func (p *dislike) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	return readReaction(ctx, tx, p.object, user.Review, vocab.Dislike, x.actor.ID)
}

// boost announces a public object to the user's followers.
type boost struct {
	about
	object vocab.ID
}

func (p *boost) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	obj, author, err := f.findObject(ctx, x, "objectId", p.ObjectID)
	if err != nil {
		return err
	}
	if !audience.IsPublic(obj.Addressing) {
		return fault.New(fault.Forbidden, "only what everybody may see is passed on").WithCode("not_public").At("/params/objectId")
	}
	p.ObjectID, p.object = string(obj.ID), obj.ID
	x.to, x.cc = []vocab.ID{vocab.Public}, []vocab.ID{f.local.Followers(x.User)}
	if !author.ID.Same(x.actor.ID) {
		x.cc = append(x.cc, author.ID)
		x.addNamed(author)
	}
	return nil
}

func (p *boost) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Announce, string(p.object)
}

func (p *boost) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	return readReaction(ctx, tx, p.object, user.Announce, vocab.Announce, x.actor.ID)
}

// readReaction returns the id of the activity by which the actor reacted to the object. The id is
// empty when the actor has no reaction of this type.
func readReaction(ctx context.Context, tx *user.Tx, object vocab.ID, kind, reaction string, actor vocab.ID) (vocab.ID, error) {
	r, err := tx.Reactions.Find(ctx, user.Reaction{Object: object, Actor: actor, Kind: kind})
	if err != nil || r == nil || r.Type != reaction {
		return "", err
	}
	return r.Activity, nil
}

// unlike, undoDislike and unboost undo a reaction. Everybody who got the reaction gets the Undo
// (ActivityPub §6.10).
type (
	unlike      struct{ takeBack }
	undoDislike struct{ takeBack }
	unboost     struct{ takeBack }
)

type takeBack struct {
	about
	undone *vocab.Activity
}

func (p *unlike) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	return p.findReaction(ctx, f, x, user.Review, vocab.Like)
}

func (p *undoDislike) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	return p.findReaction(ctx, f, x, user.Review, vocab.Dislike)
}

func (p *unboost) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	return p.findReaction(ctx, f, x, user.Announce, vocab.Announce)
}

func (p *takeBack) findReaction(ctx context.Context, f *finder, x *exchange, kind, reaction string) error {
	object, err := f.findMeantID(ctx, x, "objectId", vocab.IDOf(p.ObjectID), "", append(handler.BringingTypes(), reaction)...)
	if err != nil {
		return err
	}
	p.ObjectID = string(object)
	var stands bool
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) error {
		id, err := readReaction(ctx, tx, object, kind, reaction, x.actor.ID)
		if err != nil {
			return err
		}
		if stands = id != ""; !stands {
			return p.findUndone(ctx, tx, x, reaction)
		}
		stored, err := tx.Activities.Find(ctx, id)
		if err != nil {
			return err
		}
		if stored == nil {
			return refuseNotReacted()
		}
		if p.undone, err = stored.Parse(); err != nil {
			return err
		}
		if err := x.noteSpelling(ctx, tx, p.undone.Object.ID); err != nil {
			return err
		}
		x.earlier, err = tx.Deliveries.ListSentTo(ctx, p.undone.ID) // all who got the reaction get the Undo, even former followers
		return err
	})
	if err != nil || !stands {
		return err
	}
	return f.reachAll(ctx, x, p.undone.Addressing)
}

// findUndone finds the reaction that was undone last, in the form in which its Undo embeds it. A
// repeated action is then answered with that Undo.
func (p *takeBack) findUndone(ctx context.Context, tx *user.Tx, x *exchange, reaction string) error {
	named := vocab.IDOf(p.ObjectID)
	stored, err := tx.Activities.LatestUndo(ctx, reaction, x.actor.ID, named)
	if err == nil && stored == nil { // it may be the id of the reaction, which is not stored any more
		stored, err = tx.Activities.Latest(ctx, vocab.Undo, x.actor.ID, named)
	}
	if err != nil {
		return err
	}
	if stored == nil {
		return refuseNotReacted()
	}
	undo, err := stored.Parse()
	if err != nil {
		return err
	}
	embedded := user.Activity{Type: reaction, Raw: undo.Object.Doc.JSON()}
	if p.undone, err = embedded.Parse(); err != nil {
		return err
	}
	if p.undone.Type != reaction {
		return refuseNotReacted()
	}
	p.ObjectID = string(p.undone.Object.ID)
	return nil
}

func refuseNotReacted() error {
	return fault.New(fault.NotFound, "there is nothing to take back").WithCode("not_reacted").At("/params/objectId")
}

func (p *takeBack) constructObject(*actor.Local, *exchange) (string, any) {
	return vocab.Undo, embedActivity(p.undone.Doc)
}

func (p *takeBack) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	there, err := tx.Activities.Find(ctx, p.undone.ID)
	if err != nil || there != nil {
		return "", err
	}
	before, err := tx.Activities.Latest(ctx, vocab.Undo, x.actor.ID, p.undone.ID)
	if err == nil && before == nil {
		err = refuseNotReacted()
	}
	if err != nil {
		return "", err
	}
	return before.URI, nil
}
