package outbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// moveActor tells the followers that the user's account has moved to another one (FEP-7628).
// Servers that accept the Move make the followers follow the new account. The action is not in
// the vocabulary of clients, because the new account is set in the user's file.
type moveActor struct{ to vocab.ID }

func (moveActor) checkParams() error { return nil }

func (m moveActor) findRecipients(_ context.Context, f *finder, x *exchange) error {
	x.target, x.to = m.to, []vocab.ID{f.local.Followers(x.User)}
	return nil
}

func (moveActor) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Move, string(x.actor.ID)
}

func (moveActor) lockName() string { return "profile" }

// findEarlier returns the newest Move of the user, if it named the same account.
func (m moveActor) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	before, err := tx.Activities.Latest(ctx, vocab.Move, x.actor.ID, x.actor.ID)
	if err != nil || before == nil {
		return "", err
	}
	told, err := before.Parse()
	if err != nil {
		return "", err
	}
	if !told.Target.ID.Same(m.to) {
		return "", nil
	}
	return before.URI, nil
}

// tellMove sends the followers the Move to the new account, unless they got it before.
func (o *Outbox) tellMove(ctx context.Context, u vocab.Username, to vocab.ID) error {
	x := &exchange{Dispatch: Dispatch{User: u, Action: pipeline.Action{Name: "MoveActor"}}, now: o.Now().UTC().Truncate(time.Millisecond), intent: moveActor{to}}
	return o.pipeline.Run(ctx, x)
}
