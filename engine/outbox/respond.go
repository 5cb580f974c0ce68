package outbox

import "context"

// respond answers the dispatch with what is stored of it: by now everything that follows from it
// will happen.
func (o *Outbox) respond(ctx context.Context, x *exchange) error {
	x.result = Result{ActivityID: x.answer.Activity, ObjectID: x.answer.Object, Job: x.answer.Job, Accepted: x.answer.Accepted, Conversation: x.answer.Conversation, Unresolved: x.answer.Unresolved, Replayed: x.replayed}
	o.Log.DebugContext(ctx, "dispatch answered", "user", x.User, "activity", x.result.ActivityID, "replayed", x.replayed)
	return nil
}
