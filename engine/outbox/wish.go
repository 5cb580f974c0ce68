package outbox

import (
	"context"
	"slices"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// FulfilWish carries out a follow, block or mute that an import asks for in a user's name. A
// follow, block or mute that already exists is not repeated.
func (o *Outbox) FulfilWish(ctx context.Context, w instance.Wish) error {
	action := map[string]string{instance.WishFollow: vocab.Follow, instance.WishBlock: vocab.Block}[w.Kind]
	if action == "" {
		return o.muteActor(ctx, w)
	}
	params, err := vocab.Marshal(map[string]string{"actorUri": w.Account})
	if err != nil {
		return err
	}
	_, err = o.Dispatch(ctx, Dispatch{User: w.User, Action: pipeline.Action{Name: action, Params: params}})
	return err
}

// muteActor adds the actor that the wish names to the user's muted actors.
func (o *Outbox) muteActor(ctx context.Context, w instance.Wish) error {
	id, err := vocab.ParseID(w.Account)
	if err != nil {
		a, err := o.FindActor(ctx, w.User, false, w.Account)
		if err != nil {
			return err
		}
		id = a.ID
	}
	err = o.Profiles.UpdateUser(w.User, func(c *registry.User) error {
		if !slices.ContainsFunc(c.Moderation.MutedActors, id.Same) {
			c.Moderation.MutedActors = append(slices.Clone(c.Moderation.MutedActors), id)
		}
		return nil
	})
	if fault.KindOf(err) == fault.Invalid {
		return fault.Wrap(fault.Config, "the user mutes as many actors as a user may", err)
	}
	return err
}
