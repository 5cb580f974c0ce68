package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// addGroup stores a group that the user makes. Activities about groups are not sent to anybody.
func addGroup(ctx context.Context, tx *user.Tx, s *Sent) error {
	g := *s.Group
	g.Activity = s.Activity.ID
	return tx.Groups.Add(ctx, g, s.Now)
}

// addMember adds an actor to a group. It also stores a copy of the actor, because posts to the
// group are sent to the inbox in that copy.
func addMember(ctx context.Context, tx *user.Tx, s *Sent) error {
	if err := tx.Actors.Save(ctx, s.Target, s.Now); err != nil {
		return err
	}
	return tx.Groups.AddMember(ctx, s.Group.ID, s.Target.ID, s.Activity.ID, s.Now)
}

// removeMember removes an actor from a group. It also withdraws the deliveries to that actor that
// are queued for posts to the group. It leaves the deliveries of posts that also address the actor
// itself, another group of the user with that actor as a member, the user's followers or
// everybody.
func removeMember(ctx context.Context, tx *user.Tx, s *Sent) error {
	member := s.Activity.Object.ID
	if err := tx.Groups.RemoveMember(ctx, s.Group.ID, member); err != nil {
		return err
	}
	left, err := tx.Groups.ListOf(ctx, member)
	if err != nil {
		return err
	}
	return tx.Deliveries.Withdraw(ctx, member, []vocab.ID{s.Group.URI}, append(left, s.Actor.Followers), s.Now)
}
