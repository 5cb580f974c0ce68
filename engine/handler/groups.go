package handler

import (
	"context"

	"github.com/lightweb/lightweb/engine/vocab"
)

// addGroup keeps a group that the user makes. No activity about groups leaves.
func addGroup(ctx context.Context, tx Tx, s *Sent) error {
	g := *s.Group
	g.Activity = s.Activity.ID
	return tx.AddGroup(ctx, g, s.Now)
}

// addMember keeps the copy of the actor too: it has the inbox.
func addMember(ctx context.Context, tx Tx, s *Sent) error {
	if err := tx.SaveActor(ctx, s.Target, s.Now); err != nil {
		return err
	}
	return tx.AddMember(ctx, s.Group.ID, s.Target.ID, s.Activity.ID, s.Now)
}

// removeMember lets what was written to the group and waits for the actor's server not go there any more.
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
