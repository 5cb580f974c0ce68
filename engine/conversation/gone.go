package conversation

import (
	"context"
	"net/http"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// closeIfGone handles the answer 404 or 410 of the server of a conversation's host. First it
// fetches the host's actor from that server. If the actor is gone, closeIfGone closes the user's
// copies of all conversations of that host, and the user's encrypted conversation of two with the
// host. If the actor is there and the answer was 410, closeIfGone asks for the conversation
// itself, and closes the user's copy if that answer is 410, too. In all other cases, for example
// if the server does not answer now, it closes nothing. If the user's copy is closed afterwards,
// closeIfGone returns a Conflict.
func (m *Members) closeIfGone(ctx context.Context, u vocab.Username, c *user.Conversation, asked transport.Question, status int) error {
	_, err := m.People.Fresh(ctx, c.Host)
	isHost := fault.KindOf(err) == fault.Gone
	if !isHost {
		if status != http.StatusGone || err != nil {
			return nil
		}
		asked.Method, asked.URL, asked.Body, asked.IdempotencyKey = http.MethodGet, c.URI, nil, ""
		if again, err := m.Hosts.Ask(ctx, asked); err != nil || again.Status != http.StatusGone {
			return nil
		}
	}
	err = m.Store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) (err error) {
		if !isHost {
			return tx.Conversations.Close(ctx, c.ID, c.Host, m.Now(), nil)
		}
		_, err = tx.Conversations.CloseHostedBy(ctx, c.Host, m.Now(), nil)
		return err
	})
	if err != nil {
		return err
	}
	_, err = m.findOpen(ctx, u, c)
	return err
}
