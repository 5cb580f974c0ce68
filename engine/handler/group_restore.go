package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// restoredID returns the id of the object whose deletion an announced Undo takes back, or "" if
// the Undo is not of a Delete. Lemmy sends such an Undo when an author or a moderator restores a
// post.
func (in announced) restoredID() vocab.ID {
	object, err := in.object.Doc.Ref("object")
	if err != nil || in.object.Type() != vocab.Delete {
		return ""
	}
	return object.ID
}

// needsRestored names the object whose deletion an announced Undo takes back.
func needsRestored(a *vocab.Activity) []vocab.ID {
	in, ok := announcedBy(a)
	if !ok || in.restoredID() == "" {
		return nil
	}
	return []vocab.ID{in.restoredID()}
}

// undoOfGroup applies an announced Undo: of a Delete, or else of a reaction.
func undoOfGroup(local *actor.Local) func(context.Context, *user.Tx, *Received, announced) (Effects, error) {
	uncount := uncountGroupVote(local)
	return func(ctx context.Context, tx *user.Tx, r *Received, in announced) (Effects, error) {
		if id := in.restoredID(); id != "" {
			return restorePost(ctx, tx, r, r.Fetched[id])
		}
		return uncount(ctx, tx, r, in)
	}
}

// restorePost stores o in place of its Tombstone. The object o is what its server shows. It has to
// be a public post to the Group by the author that deleted it, because other Groups have no say in
// what becomes of it.
func restorePost(ctx context.Context, tx *user.Tx, r *Received, o *vocab.Object) (Effects, error) {
	if o == nil || r.Mine(o.ID) || !isPassable(o, r.Actor.ID) || !audience.IsPublic(o.Addressing) || !audience.Names(o.Addressing, r.Actor.ID) {
		return Effects{}, ErrIgnored
	}
	stored, err := tx.Objects.Find(ctx, o.ID)
	if err != nil || stored == nil || stored.DeletedAt == nil {
		return Effects{}, ignoredUnless(err)
	}
	isAuthors, err := tx.Objects.IsBuried(ctx, user.Owned{ID: o.ID, Actor: o.AttributedTo})
	if err != nil || !isAuthors {
		return Effects{}, ignoredUnless(err)
	}
	if o, err = approve(ctx, tx, r, o); err != nil {
		return Effects{}, err
	}
	if err := tx.Objects.Restore(ctx, Stored(o, r.Now)); err != nil {
		return Effects{}, err
	}
	return r.dropActivity(ctx, tx)
}
