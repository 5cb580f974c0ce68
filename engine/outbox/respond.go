package outbox

import "context"

// respond answers the dispatch from its stored answer. By now all results of the dispatch are
// stored, and the deliveries will be made.
func (s *answers) respond(ctx context.Context, x *exchange) error {
	x.result = Result{ActivityID: x.answer.Activity, ObjectID: x.answer.Object, Job: x.answer.Job, Accepted: x.answer.Accepted, Conversation: x.answer.Conversation, Unresolved: x.answer.Unresolved, Replayed: x.replayed}
	s.log.DebugContext(ctx, "dispatch answered", "user", x.User, "activity", x.result.ActivityID, "replayed", x.replayed)
	return nil
}
