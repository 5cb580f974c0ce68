package outbox

import (
	"context"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/vocab"
)

// deleteActor sends the Delete of the user's actor (ActivityPub §7.4) to every actor in the
// user's database. It is not in the vocabulary, so no client can dispatch it.
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

// findEarlier returns the Delete of the user's actor that was sent before, if there is one.
func (deleteActor) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	before, err := tx.Activities.Latest(ctx, vocab.Delete, x.actor.ID, x.actor.ID)
	if err != nil || before == nil {
		return "", err
	}
	return before.URI, nil
}

// refuseGone refuses to store an activity after the Delete of the user's actor. Such a dispatch
// was in progress when the user was deleted.
func refuseGone(ctx context.Context, tx *user.Tx, x *exchange) error {
	told, err := deleteActor{}.findEarlier(ctx, tx, x)
	if err == nil && told != "" {
		err = fault.New(fault.Gone, "the user is deleted")
	}
	return err
}

// TellDeletion sends the Delete of the user to all actors in the user's database, unless it was
// sent before. All other open deliveries of the user are skipped.
func (o *Outbox) TellDeletion(ctx context.Context, u vocab.Username) error {
	x := &exchange{Dispatch: Dispatch{User: u, Action: pipeline.Action{Name: "DeleteActor"}}, now: o.Now().UTC().Truncate(time.Millisecond), intent: deleteActor{}}
	return o.pipeline.Run(ctx, x)
}

// chooseEverybody chooses the inboxes of all actors in the user's database and of the relays. It
// skips the user's other open deliveries.
func (f *fanOut) chooseEverybody(ctx context.Context, tx *user.Tx, x *exchange) error {
	if err := tx.Deliveries.SkipOpen(ctx, "the user is deleted", x.now); err != nil {
		return err
	}
	all, err := tx.Relationships.KnownDestinations(ctx)
	if err != nil {
		return err
	}
	relays, _ := f.chooseRelays(x)
	x.inboxes = f.skipRefused(x, delivery.MergeInboxes(delivery.Destinations(all, nil, f.addresses.InboxOwner), relays))
	return nil
}
