package outbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// respond answers the dispatch with what is stored of it: by now everything that follows from it will happen.
func (o *Outbox) respond(ctx context.Context, x *exchange) error {
	x.result = Result{ActivityID: x.answer.Activity, ObjectID: x.answer.Object, Job: x.answer.Job, Replayed: x.replayed}
	o.Log.DebugContext(ctx, "dispatch answered", "user", x.User, "activity", x.result.ActivityID, "replayed", x.replayed)
	return nil
}

// objectOf returns the object or group that an activity of the user's makes, changes or is about, empty when that is an actor.
func objectOf(a *vocab.Activity) vocab.ID {
	switch a.Type {
	case "Create", "Update", "Delete", "Like", "Dislike", "Announce":
		return a.Object.ID
	case "Add", "Remove":
		return a.Target.ID
	case "Undo":
		if slices.Contains([]string{"Like", "Dislike", "Announce"}, a.Object.Type()) {
			return vocab.IDOf(a.Object.Doc.Text("object"))
		}
	}
	return ""
}
