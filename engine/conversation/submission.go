package conversation

import (
	"context"
	"net/http"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// findOpen returns a conversation that the user does not host. It refuses a frozen or closed one,
// which cannot be changed.
func (m *Members) findOpen(ctx context.Context, u vocab.Username, c *user.Conversation) (j *user.JoinedConversation, err error) {
	err = m.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		if j, err = readJoined(ctx, tx, c); err != nil {
			return err
		}
		switch j.Status {
		case user.StatusFrozen:
			return conflictOf(j, "conversation_frozen", "its host was shown to tell members different things; begin another conversation")
		case user.StatusClosed: // this user may have closed it, and the host may not know that yet
			return conflictOf(j, "conversation_closed", "the conversation is closed")
		}
		return nil
	})
	return j, err
}

func conflictOf(j *user.JoinedConversation, code, detail string) *Conflict {
	return &Conflict{GroupID: j.GroupID, Generation: j.Generation, Epoch: j.Epoch, Status: j.Status, err: fault.New(fault.Conflict, detail).WithCode(code)}
}

// submissionHost is the host of a conversation, to which changes are sent.
type submissionHost struct {
	isHere   bool  // the host is a user of this server
	at       Place // the conversation; zero unless isHere
	isJoined bool  // it is stored that a device of the user has joined
}

// findHost returns the host of a conversation that the user wants to change. It refuses a
// conversation that cannot be changed, that has no host, or whose host is a suspended user of
// this server.
func (m *Members) findHost(ctx context.Context, u vocab.Username, c *user.Conversation) (submissionHost, error) {
	if m.hosts(u, c) {
		return submissionHost{isHere: true, at: Place{Host: u, ID: c.ID}, isJoined: true}, nil
	}
	j, err := m.findOpen(ctx, u, c)
	if err != nil {
		return submissionHost{}, err
	}
	if c.Host == "" {
		return submissionHost{}, fault.New(fault.Unprocessable, "nobody puts the conversation in order: name those for which a message is, in to").WithCode("no_host")
	}
	at, isHere := m.PlaceOf(c)
	if isHere {
		err = m.CheckHost(ctx, at.Host)
	}
	return submissionHost{isHere: isHere, at: at, isJoined: j.Confirmed}, err
}

// submit sends a change to a host on another server, and checks its answer.
func (m *Members) submit(ctx context.Context, u vocab.Username, c *user.Conversation, path, key string, body any) (Accepted, error) {
	var a Accepted
	replayed, err := m.ask(ctx, u, c, http.MethodPost, path, key, body, &a)
	if err == nil && (a.Seq < 0 || a.Seq > maxSeq || a.Epoch < 0 || a.Generation < 0) {
		err = badReply(nil)
	}
	a.Replayed = replayed
	return a, err
}

// noteJoined stores that a device of the user has joined a conversation, whose host has just
// accepted a message of the user. The device may have joined by an external commit, and have no
// Welcome to confirm. Only the user's own request proves the join, because a host can name any
// sender in its log. If another conversation has the MLS group, this one stays an invitation. If
// the database cannot be written now, the user still gets the host's answer, and the next
// accepted message of the user stores the join.
func (m *Members) noteJoined(ctx context.Context, u vocab.Username, c *user.Conversation, at submissionHost) {
	if at.isJoined {
		return
	}
	err := m.Store.Write(context.WithoutCancel(ctx), u, func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Messages.Lock(ctx); err != nil {
			return err
		}
		return tx.Joined.Confirm(ctx, c.ID, m.Local.ID(u))
	})
	if err != nil && !user.IsTakenGroup(err) {
		m.Log.WarnContext(ctx, "the conversation in which the user wrote stays an invitation until the next message", "user", u, "conversation", c.ID, "err", err)
	}
}
