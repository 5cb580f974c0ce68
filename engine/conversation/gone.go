package conversation

import (
	"context"
	"net/http"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// closeIfGone closes the user's copies of the conversations of a host that is gone, and returns
// a Conflict then. The answer of the host's server was 404 or 410. Before anything is closed,
// that server is asked once more: for the host, and after a 410 also for the conversation. A
// server that does not answer, or answers 404 for the conversation, closes nothing.
func (m *Members) closeIfGone(ctx context.Context, u vocab.Username, c *user.Conversation, asked transport.Question, status int) error {
	_, err := m.People.Fresh(ctx, c.Host)
	isHost := fault.KindOf(err) == fault.Gone && err != nil
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
			return tx.Conversations.Close(ctx, c.ID, c.Host, m.Now())
		}
		_, err = tx.Conversations.CloseHostedBy(ctx, c.Host, m.Now())
		return err
	})
	if err != nil {
		return err
	}
	return m.checkOpen(ctx, u, c)
}
