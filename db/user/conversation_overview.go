package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// ConversationOverview has the facts that a list of the user's conversations shows an operator.
// For a conversation whose host is another actor it has the state that this database knows.
type ConversationOverview struct {
	ID       uuid.UUID `json:"id"`
	Mode     string    `json:"mode"`
	Status   string    `json:"status"`
	Epoch    int64     `json:"epoch"`
	Members  int       `json:"members"`
	Host     vocab.ID  `json:"host"`
	ActiveAt time.Time `json:"active_at"` // last change of its MLS state, else its creation
}

// ConversationDetails has the facts about one conversation that an operator sees, besides its
// ConversationCounts.
type ConversationDetails struct {
	ConversationOverview
	URI        vocab.ID `json:"uri"`
	GroupID    string   `json:"group_id"`
	Generation int32    `json:"generation"`
	Term       int32    `json:"term"`
	LastSeq    int64    `json:"last_seq"`
	Reset      string   `json:"reset_group_id"` // the next MLS group; empty unless a reset is pending
}

const (
	overviewColumns = `c.id, c.mode, coalesce(m.status, j.status, '') AS status, coalesce(m.epoch, j.epoch, 0) AS epoch,
		(SELECT count(*) FROM conversation_members p WHERE p.conversation_id = c.id AND p.left_seq IS NULL) AS members, c.host_uri AS host, coalesce(m.updated_at, j.updated_at, c.created_at) AS active_at`
	detailColumns = overviewColumns + `, c.uri, coalesce(c.group_id, '') AS group_id, coalesce(m.generation, j.generation, 0) AS generation, coalesce(m.term, 0) AS term,
		coalesce(m.last_seq, j.last_seq, 0) AS last_seq, coalesce(m.reset_group_id, j.reset_group_id, '') AS reset`
	fromOverviews = ` FROM conversations c LEFT JOIN mls_conversations m USING (id) LEFT JOIN mls_joined j USING (id)`
)

// ListOverviews returns up to n conversations of the user, the last changed first.
func (t Conversations) ListOverviews(ctx context.Context, n int) ([]ConversationOverview, error) {
	return collect[ConversationOverview](ctx, t.tx, "look over conversations", `SELECT `+overviewColumns+fromOverviews+` ORDER BY active_at DESC, c.id DESC LIMIT $1`, n)
}

// FindDetails returns the details of a conversation, nil when there is none.
func (t Conversations) FindDetails(ctx context.Context, id uuid.UUID) (*ConversationDetails, error) {
	return one[ConversationDetails](ctx, t.tx, "look over conversation", `SELECT `+detailColumns+fromOverviews+` WHERE c.id = $1`, id)
}

// Count returns the number of the user's conversations.
func (t Conversations) Count(ctx context.Context) (n int, err error) {
	err = t.row(ctx, "count conversations", `SELECT count(*) FROM conversations`, nil, &n)
	return n, err
}

// ConversationCounts has the numbers of stored messages and Welcomes of a conversation.
type ConversationCounts struct {
	LogCounts `json:"log"`
	Welcomes  int `json:"welcomes_waiting"` // not confirmed by any device
}

// LogCounts has the number of messages of each kind in the log of a conversation.
type LogCounts struct {
	Commits      int `json:"commit"`
	Proposals    int `json:"proposal"`
	Applications int `json:"application"`
}

// FindCounts counts the messages and the unconfirmed Welcomes of a conversation. If the user does
// not host the conversation, it counts those messages that arrived here and have a number.
func (t Conversations) FindCounts(ctx context.Context, id uuid.UUID) (*ConversationCounts, error) {
	return one[ConversationCounts](ctx, t.tx, "count messages", `SELECT count(*) FILTER (WHERE kind = 'commit') AS commits, count(*) FILTER (WHERE kind = 'proposal') AS proposals, count(*) FILTER (WHERE kind = 'application') AS applications,
		(SELECT count(*) FROM mls_welcomes WHERE conversation_id = $1 AND state IN ('available', 'in_flight')) AS welcomes
		FROM (SELECT kind FROM mls_log WHERE conversation_id = $1
			UNION ALL SELECT i.kind FROM mls_inbox i JOIN mls_joined j ON j.id = i.conversation_id WHERE j.id = $1 AND i.seq IS NOT NULL) AS logged`, id)
}
