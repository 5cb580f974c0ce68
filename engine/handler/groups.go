package handler

import (
	"context"

	"github.com/lightweb/lightweb/engine/vocab"
)

// addGroup stores a group that the user makes. Activities about groups are not sent.
func addGroup(ctx context.Context, tx Tx, s *Sent) error {
	g := *s.Group
	g.Activity = s.Activity.ID
	return tx.AddGroup(ctx, g, s.Now)
}

// addMember adds an actor to a group, and saves the copy of the actor, which has its inbox.
func addMember(ctx context.Context, tx Tx, s *Sent) error {
	if err := tx.SaveActor(ctx, s.Target, s.Now); err != nil {
		return err
	}
	return tx.AddMember(ctx, s.Group.ID, s.Target.ID, s.Activity.ID, s.Now)
}

// removeMember takes an actor out of a group, and withdraws posts to the group that still wait for
// the actor's server.
func removeMember(ctx context.Context, tx Tx, s *Sent) error {
	member := s.Activity.Object.ID
	if err := tx.RemoveMember(ctx, s.Group.ID, member); err != nil {
		return err
	}
	left, err := tx.GroupsOf(ctx, member)
	if err != nil {
		return err
	}
	return tx.Withdraw(ctx, member, []vocab.ID{s.Group.URI}, append(left, s.Actor.Followers), s.Now)
}
