package user

import "context"

// pruneMessages removes old Welcomes, old held activities (see HeldActivity), and old messages of
// the user's conversations. A device that has not fetched such a Welcome or message by then must
// join again. A conversation keeps its epoch, and the numbers of removed messages are not
// assigned again.
func pruneMessages(ctx context.Context, t *tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	if p.Messages.IsZero() {
		return did, nil, nil
	}
	messages, err := t.execBeside(ctx, "prune messages", `DELETE FROM mls_log WHERE (conversation_id, seq) IN
		(SELECT conversation_id, seq FROM mls_log WHERE created_at < $1 ORDER BY created_at LIMIT $2)`, p.Messages, pruneBatch)
	if err != nil {
		return did, nil, err
	}
	received, err := t.execBeside(ctx, "prune received messages", `DELETE FROM mls_inbox WHERE arrival IN (SELECT arrival FROM mls_inbox WHERE received_at < $1 ORDER BY received_at LIMIT $2)`,
		p.Messages, pruneBatch)
	if err != nil {
		return did, nil, err
	}
	welcomes, err := t.execBeside(ctx, "prune welcomes", `DELETE FROM mls_welcomes WHERE id IN (SELECT id FROM mls_welcomes WHERE created_at < $1 LIMIT $2)`, p.Messages, pruneBatch)
	if err != nil {
		return did, nil, err
	}
	held, err := t.execBeside(ctx, "prune held activities", `DELETE FROM mls_held WHERE (conversation_id, content_hash, place) IN
		(SELECT conversation_id, content_hash, place FROM mls_held WHERE created_at < $1 ORDER BY created_at LIMIT $2)`, p.Messages, pruneBatch)
	if max(messages, received, welcomes, held) == pruneBatch && !p.DryRun {
		next = &reached{}
	}
	return Pruned{Messages: int(messages + received + welcomes + held)}, next, err
}

// pruneInvitations removes old conversations that no device of the user has joined and whose
// Welcome is gone. Nobody can join them any more. A conversation stays if it is the one of the user
// with another actor, or if another conversation names it as its successor.
func pruneInvitations(ctx context.Context, t *tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	if p.Messages.IsZero() {
		return did, nil, nil
	}
	if err := t.lock(ctx, messagesLock); err != nil { // a Welcome to such a conversation may arrive
		return did, nil, err
	}
	lapsed, err := t.execBeside(ctx, "prune invitations", `DELETE FROM conversations WHERE id IN (SELECT c.id FROM conversations c JOIN mls_joined USING (id)
		WHERE NOT c.confirmed AND c.partner_uri IS NULL AND c.created_at < $1 AND NOT EXISTS (SELECT FROM conversations o WHERE o.successor_uri = c.uri)
			AND NOT EXISTS (SELECT FROM mls_welcomes w WHERE w.conversation_id = c.id AND w.state IN ('available', 'in_flight')) LIMIT $2)`, p.Messages, pruneBatch)
	if lapsed == pruneBatch && !p.DryRun {
		next = &reached{}
	}
	return Pruned{Messages: int(lapsed)}, next, err
}
