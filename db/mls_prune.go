package db

import "context"

// pruneMessages forgets messages of the user's conversations, and the Welcomes of the same age:
// whoever has not fetched them by then joins again. The conversation keeps its epoch, and the
// numbers are not given again.
func pruneMessages(ctx context.Context, t *Tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
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
	if max(messages, received, welcomes) == pruneBatch && !p.DryRun {
		next = &reached{}
	}
	return Pruned{Messages: int(messages + received + welcomes)}, next, err
}
