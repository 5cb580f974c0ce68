package conversation

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/vocab"
)

// View is a conversation as a member sees it.
type View struct {
	ID         uuid.UUID
	URI        vocab.ID
	GroupID    string
	Generation int32
	Epoch      int64
	LastSeq    int64
	Status     string
	Reset      string // the group that comes next; empty unless a reset is pending
	Members    []db.ConversationMember
	JoinedSeq  int64 // of the viewer
}

// readView returns what a member sees of a conversation.
func readView(ctx context.Context, tx *db.Tx, id uuid.UUID, viewer vocab.ID) (View, error) {
	c, err := readAs(ctx, tx, id, viewer)
	if err != nil {
		return View{}, err
	}
	v := View{ID: id, URI: c.URI, GroupID: c.GroupID, Generation: c.Generation, Epoch: c.Epoch, LastSeq: c.LastSeq, Status: c.Status, Reset: c.ResetGroupID}
	v.Members, err = tx.ConversationMembers(ctx, id)
	for _, m := range v.Members {
		if m.Actor == viewer {
			v.JoinedSeq = m.JoinedSeq
		}
	}
	return v, err
}

// readAs returns a conversation if the viewer is a member.
func readAs(ctx context.Context, tx *db.Tx, id uuid.UUID, viewer vocab.ID) (*db.HostedConversation, error) {
	c, err := tx.HostedConversation(ctx, id)
	if err == nil && c == nil {
		err = errNoConversation
	}
	if err != nil {
		return nil, err
	}
	_, err = memberOf(ctx, tx, c, viewer)
	return c, err
}

// CheckPeer refuses an actor of another server who is no member of a conversation, and one that
// the host blocks: nothing is taken from it, as in an inbox.
func (r *Registry) CheckPeer(ctx context.Context, at Place, actor vocab.ID) error {
	return r.Store.Read(ctx, at.Host, func(ctx context.Context, tx *db.Tx) error {
		if _, err := readAs(ctx, tx, at.ID, actor); err != nil {
			return err
		}
		blocked, err := tx.Blocked(ctx, []vocab.ID{actor})
		if err == nil && blocked[actor] {
			err = errNotMember
		}
		return err
	})
}

// View returns what a member sees of a conversation.
func (r *Registry) View(ctx context.Context, at Place, viewer vocab.ID) (v View, err error) {
	err = r.Store.Read(ctx, at.Host, func(ctx context.Context, tx *db.Tx) error {
		v, err = readView(ctx, tx, at.ID, viewer)
		return err
	})
	return v, err
}

// maxLogPage is about how many bytes of messages one page of a log has.
const maxLogPage = 4 << 20

// ReadLog returns the messages of a conversation after a number, the oldest first: those that came
// since the viewer joined. more tells whether others follow.
func (r *Registry) ReadLog(ctx context.Context, at Place, viewer vocab.ID, after int64) (entries []db.LogEntry, more bool, err error) {
	err = r.Store.Read(ctx, at.Host, func(ctx context.Context, tx *db.Tx) error {
		c, err := readAs(ctx, tx, at.ID, viewer)
		if err != nil {
			return err
		}
		m, err := memberOf(ctx, tx, c, viewer)
		if err != nil {
			return err
		}
		if entries, err = tx.Log(ctx, at.ID, max(after, m.JoinedSeq), mostLogged, maxLogPage); err != nil {
			return err
		}
		more = len(entries) > 0 && entries[len(entries)-1].Seq < c.LastSeq
		return nil
	})
	return entries, more, err
}

// GroupInfo returns the state of the MLS group, by which a device of a member joins again.
func (r *Registry) GroupInfo(ctx context.Context, at Place, viewer vocab.ID) (groupInfo []byte, epoch int64, err error) {
	err = r.Store.Read(ctx, at.Host, func(ctx context.Context, tx *db.Tx) error {
		c, err := readAs(ctx, tx, at.ID, viewer)
		if err == nil {
			err = checkActive(c)
		}
		if err == nil {
			groupInfo, epoch = c.GroupInfo, c.Epoch
		}
		return err
	})
	return groupInfo, epoch, err
}

// Conversations returns up to n conversations of a user after a place, the newest first, with how
// much of each the user has not read.
func (r *Registry) Conversations(ctx context.Context, u vocab.Username, after *db.Place, n int) (all []db.ListedConversation, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		all, err = tx.ListConversations(ctx, r.Actors.ID(u), after, n)
		return err
	})
	return all, err
}

// Find returns a conversation of a user.
func (r *Registry) Find(ctx context.Context, u vocab.Username, id uuid.UUID) (c *db.Conversation, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		c, err = tx.Conversation(ctx, id)
		return err
	})
	if err == nil && c == nil {
		err = errNoConversation
	}
	return c, err
}

// MarkRead notes how far a user has read a conversation: its log up to a number, and its other
// entries up to one. Zero leaves either as it is.
func (r *Registry) MarkRead(ctx context.Context, u vocab.Username, id uuid.UUID, seq, entry int64) error {
	return r.Store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.MarkConversationRead(ctx, id, seq); err != nil {
			return err
		}
		return tx.MarkEntriesRead(ctx, id, entry)
	})
}
