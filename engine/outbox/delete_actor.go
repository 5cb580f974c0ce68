package outbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// deleteActor tells every actor that the user's database knows that the user is gone (ActivityPub
// §7.4). It is no action: no program may dispatch it.
type deleteActor struct{}

func (deleteActor) checkParams() error { return nil }

func (deleteActor) findRecipients(_ context.Context, _ *finder, x *exchange) error {
	x.to = []vocab.ID{vocab.Public}
	return nil
}

func (deleteActor) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Delete, string(x.actor.ID)
}

func (deleteActor) lockName() string { return "deletion" }

// findEarlier returns the activity that told of it before.
func (deleteActor) findEarlier(ctx context.Context, tx *db.Tx, x *exchange) (vocab.ID, error) {
	before, err := tx.LatestActivity(ctx, vocab.Delete, x.actor.ID, x.actor.ID)
	if err != nil || before == nil {
		return "", err
	}
	return before.URI, nil
}

// refuseGone refuses what is to be stored after everybody was told that the user is gone: it was
// under way when the user was deleted.
func refuseGone(ctx context.Context, tx *db.Tx, x *exchange) error {
	told, err := deleteActor{}.findEarlier(ctx, tx, x)
	if err == nil && told != "" {
		err = fault.New(fault.Gone, "the user is deleted")
	}
	return err
}

// TellDeletion tells everybody who may hold something of the user that it is gone, unless they were
// told. Whatever else the user owed goes to nobody any more.
func (o *Outbox) TellDeletion(ctx context.Context, u vocab.Username) error {
	x := &exchange{Dispatch: Dispatch{User: u, Action: pipeline.Action{Name: "DeleteActor"}}, now: o.Now().UTC().Truncate(time.Millisecond), intent: deleteActor{}}
	return o.pipeline.Run(ctx, x)
}

// chooseEverybody chooses the inboxes of all actors that the user's database knows, and skips what
// the user owes them beside.
func (o *Outbox) chooseEverybody(ctx context.Context, tx *db.Tx, x *exchange) error {
	if err := tx.SkipOpenDeliveries(ctx, "the user is deleted", x.now); err != nil {
		return err
	}
	all, err := tx.KnownDestinations(ctx)
	if err != nil {
		return err
	}
	relays, _ := o.chooseRelays(x)
	x.inboxes = o.skipRefused(x, delivery.MergeInboxes(delivery.Destinations(all, nil, o.Local.InboxOwner), relays))
	return nil
}
