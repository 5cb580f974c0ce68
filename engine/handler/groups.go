package handler

import "context"

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

func removeMember(ctx context.Context, tx Tx, s *Sent) error {
	return tx.RemoveMember(ctx, s.Group.ID, s.Activity.Object.ID)
}
