package conversation

import (
	"context"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/user"
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
	Reset      string // the next MLS group; empty unless a reset is pending
	Members    []user.ConversationMember
	JoinedSeq  int64 // log number at which the viewer joined; Members.View sets it only for hosts
	Mixed      bool  // an actor that knows only the SWICG draft may be in the group
}

// readView returns a conversation as a member sees it.
func readView(ctx context.Context, tx *user.Tx, id uuid.UUID, viewer vocab.ID) (View, error) {
	c, err := readAs(ctx, tx, id, viewer)
	if err != nil {
		return View{}, err
	}
	v := View{ID: id, URI: c.URI, GroupID: c.GroupID, Generation: c.Generation, Epoch: c.Epoch, LastSeq: c.LastSeq, Status: c.Status, Reset: c.ResetGroupID, Mixed: c.Mixed}
	v.Members, err = tx.Conversations.ListMembers(ctx, id)
	for _, m := range v.Members {
		if m.Actor == viewer {
			v.JoinedSeq = m.JoinedSeq
		}
	}
	return v, err
}

// readAs returns a conversation if the viewer is a member that the host does not block.
func readAs(ctx context.Context, tx *user.Tx, id uuid.UUID, viewer vocab.ID) (*user.HostedConversation, error) {
	c, err := tx.Hosted.Find(ctx, id)
	if err == nil && c == nil {
		err = errNoConversation
	}
	if err != nil {
		return nil, err
	}
	_, err = memberOf(ctx, tx, c, viewer)
	return c, err
}

// Read reads a user's database.
type Read func(ctx context.Context, u vocab.Username, work func(context.Context, *user.Tx) error) error

// CheckPeer refuses an actor of another server if the actor is not a member of the conversation,
// or if the host blocks the actor. Inboxes refuse blocked actors, too. CheckPeer uses the
// parameter read, so that strangers do not take the connections that are kept for users.
func (r *Registry) CheckPeer(ctx context.Context, read Read, at Place, actor vocab.ID) error {
	return read(ctx, at.Host, func(ctx context.Context, tx *user.Tx) error {
		_, err := readAs(ctx, tx, at.ID, actor)
		return err
	})
}

// View returns a conversation as a member sees it.
func (r *Registry) View(ctx context.Context, at Place, viewer vocab.ID) (v View, err error) {
	err = r.Store.Read(ctx, at.Host, func(ctx context.Context, tx *user.Tx) error {
		v, err = readView(ctx, tx, at.ID, viewer)
		return err
	})
	return v, err
}

// maxLogPage is the approximate limit of the bytes of messages in one page of a log.
const maxLogPage = 4 << 20

// ReadLog returns the messages of a conversation with numbers higher than after, the oldest
// first. It leaves out messages from before the viewer joined. The result "more" reports whether
// other messages follow.
func (r *Registry) ReadLog(ctx context.Context, at Place, viewer vocab.ID, after int64) (entries []user.LogEntry, more bool, err error) {
	err = r.Store.Read(ctx, at.Host, func(ctx context.Context, tx *user.Tx) error {
		c, err := readAs(ctx, tx, at.ID, viewer)
		if err != nil {
			return err
		}
		m, err := memberOf(ctx, tx, c, viewer)
		if err != nil {
			return err
		}
		if entries, err = tx.Hosted.ListLog(ctx, at.ID, max(after, m.JoinedSeq), mostLogged, maxLogPage); err != nil {
			return err
		}
		more = len(entries) > 0 && entries[len(entries)-1].Seq < c.LastSeq
		return nil
	})
	return entries, more, err
}

// GroupInfo returns the GroupInfo of the conversation's MLS group, and the epoch of the group.
// With the GroupInfo a member's device can join again.
func (r *Registry) GroupInfo(ctx context.Context, at Place, viewer vocab.ID) (groupInfo []byte, epoch int64, err error) {
	err = r.Store.Read(ctx, at.Host, func(ctx context.Context, tx *user.Tx) error {
		c, err := readAs(ctx, tx, at.ID, viewer)
		if err == nil {
			err = checkActive(c)
		}
		if err == nil && len(c.GroupInfo) == 0 {
			err = conflictWith(c, "no_group_info", "nobody has given the GroupInfo of this epoch: a device that has lost its state is removed and added anew")
		}
		if err == nil {
			groupInfo, epoch = c.GroupInfo, c.Epoch
		}
		return err
	})
	return groupInfo, epoch, err
}

// Conversations returns up to n conversations of a user, the newest first, with the number of
// unread entries of each. If a place is given, the list begins after it.
func (r *Registry) Conversations(ctx context.Context, u vocab.Username, after *user.Place, n int) (all []user.ListedConversation, err error) {
	err = r.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		all, err = tx.Conversations.List(ctx, r.Actors.ID(u), after, n)
		return err
	})
	return all, err
}

// Find returns a conversation of a user.
func (r *Registry) Find(ctx context.Context, u vocab.Username, id uuid.UUID) (c *user.Conversation, err error) {
	err = r.Store.Look(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		c, err = tx.Conversations.Find(ctx, id)
		return err
	})
	if err == nil && c == nil {
		err = errNoConversation
	}
	return c, err
}

// MarkRead stores how far a user has read a conversation: its log up to the number seq, and the
// entries outside the log up to the number entry. If one of the two numbers is zero, that mark
// stays as it is. If a mark moved, the user's clients get an event.
func (r *Registry) MarkRead(ctx context.Context, u vocab.Username, id uuid.UUID, seq, entry int64) error {
	return r.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		c, err := tx.Conversations.MarkRead(ctx, id, seq, entry)
		if err != nil || c == nil {
			return err
		}
		return tx.Events.Add(ctx, newReadEvent(c, r.Now()))
	})
}
