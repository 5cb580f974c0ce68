package db

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// ConversationOverview is what an operator sees of a conversation of the user. Of one that
// somebody else puts in order it is the state that is known here.
type ConversationOverview struct {
	ID         uuid.UUID
	URI        vocab.ID
	Mode       string
	Host       vocab.ID
	GroupID    string
	Status     string
	Generation int32
	Term       int32
	Epoch      int64
	LastSeq    int64
	Reset      string // the group that comes next; empty unless a reset is pending
	Members    int
	ActiveAt   time.Time // when it changed last
}

const overviewQuery = `SELECT c.id, c.uri, c.mode, c.host_uri, coalesce(c.group_id, ''), coalesce(m.status, j.status, ''), coalesce(m.generation, j.generation, 0), coalesce(m.term, 0),
		coalesce(m.epoch, j.epoch, 0), coalesce(m.last_seq, j.last_seq, 0), coalesce(m.reset_group_id, j.reset_group_id, ''),
		(SELECT count(*) FROM conversation_members p WHERE p.conversation_id = c.id AND p.left_seq IS NULL), coalesce(m.updated_at, j.updated_at, c.created_at)
	FROM conversations c LEFT JOIN mls_conversations m USING (id) LEFT JOIN mls_joined j USING (id)`

// ConversationOverviews returns up to n conversations of the user, those that changed last first.
func (t *Tx) ConversationOverviews(ctx context.Context, n int) ([]ConversationOverview, error) {
	return collect[ConversationOverview](ctx, t, "look over conversations", overviewQuery+` ORDER BY 13 DESC, c.id DESC LIMIT $1`, n)
}

// ConversationOverview returns what an operator sees of a conversation, nil when there is none.
func (t *Tx) ConversationOverview(ctx context.Context, id uuid.UUID) (*ConversationOverview, error) {
	return one[ConversationOverview](ctx, t, "look over conversation", overviewQuery+` WHERE c.id = $1`, id)
}

// CountConversations returns how many conversations the user takes part in.
func (t *Tx) CountConversations(ctx context.Context) (n int, err error) {
	err = t.row(ctx, "count conversations", `SELECT count(*) FROM conversations`, nil, &n)
	return n, err
}

// ConversationCounts is how much is kept of a conversation.
type ConversationCounts struct {
	Commits, Proposals, Applications int // in the log
	Welcomes                         int // that nobody has confirmed
}

// ConversationCounts counts what is kept of a conversation.
func (t *Tx) ConversationCounts(ctx context.Context, id uuid.UUID) (*ConversationCounts, error) {
	return one[ConversationCounts](ctx, t, "count messages", `SELECT count(*) FILTER (WHERE kind = 'commit'), count(*) FILTER (WHERE kind = 'proposal'), count(*) FILTER (WHERE kind = 'application'),
		(SELECT count(*) FROM mls_welcomes WHERE conversation_id = $1 AND state IN ('available', 'in_flight')) FROM mls_log WHERE conversation_id = $1`, id)
}
