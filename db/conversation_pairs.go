package db

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// PairNote is a private Note between the user and one other actor.
type PairNote struct {
	User, Partner vocab.ID
	Object        vocab.ID // empty: only the conversation is made
	Own           bool     // the user wrote it
	At            time.Time
}

// maxEarlier bounds the Notes that a conversation begins with.
const maxEarlier = 1000

// AddPairNote puts a Note into the conversation of the two, which begins with it unless there is
// one: with the latest Notes of the two that were there before. It returns the conversation, and
// whether it was made. The row of the conversation is locked from then on.
func (t *Tx) AddPairNote(ctx context.Context, n PairNote) (*Conversation, bool, error) {
	type row struct {
		Made bool
		ID   uuid.UUID
	}
	id := uuid.Must(uuid.NewV7())
	done, err := one[row](ctx, t, "add note to conversation", `WITH pair AS (
			INSERT INTO conversations (id, uri, mode, host_uri, partner_uri, entries, created_at) VALUES ($1, $2, 'federated', $3, $4, 1, $5)
			ON CONFLICT (partner_uri) WHERE successor_uri IS NULL DO UPDATE SET entries = conversations.entries + 1 RETURNING id, entries),
		members AS (INSERT INTO conversation_members (conversation_id, actor_uri, role, joined_seq)
			SELECT id, m.actor, m.role, 0 FROM pair, (VALUES ($3, 'admin'), ($4, 'member')) AS m (actor, role) WHERE id = $1),
		entry AS (INSERT INTO conversation_entries (conversation_id, n, seq, kind, object_uri, own, at)
			SELECT id, entries, `+lastSeqOf("pair.id")+`, 'note', $6, $7, $5 FROM pair WHERE $6 <> '' ON CONFLICT (conversation_id, object_uri) DO NOTHING)
		SELECT id = $1, id FROM pair`, id, n.User+"/conversations/"+vocab.ID(id.String()), n.User, n.Partner, n.At, n.Object, n.Own)
	if err != nil {
		return nil, false, err
	}
	if done.Made {
		if err := t.addEarlierNotes(ctx, done.ID, n); err != nil {
			return nil, false, err
		}
	}
	c, err := t.Conversation(ctx, done.ID)
	return c, done.Made, err
}

// lastSeqOf is the last number of the log of a conversation, 0 when it has none.
func lastSeqOf(id string) string {
	return `coalesce((SELECT last_seq FROM mls_conversations WHERE id = ` + id + `), (SELECT whole_seq FROM mls_joined WHERE id = ` + id + `), 0)`
}

// addEarlierNotes puts what two actors wrote to each other before into their conversation, under
// numbers below those of all that comes.
func (t *Tx) addEarlierNotes(ctx context.Context, id uuid.UUID, n PairNote) error {
	_, err := t.execBeside(ctx, "add earlier notes", `WITH earlier AS (
			SELECT DISTINCT ON (o.uri) o.uri, a.direction = 'outbound' AS own, a.published FROM activities a JOIN objects o ON o.uri = a.object_uri
			WHERE a.type = '`+vocab.Create+`' AND (a.direction = 'inbound' AND a.actor_uri = $2 OR a.direction = 'outbound' AND `+sentTo("a.raw", "$2")+`)
				AND o.deleted_at IS NULL AND o.raw -> 'type' ? 'Note' AND NOT o.raw ? 'name' AND `+amongIn("o.raw", "jsonb_build_array($2::text, $3::text)")+`
				AND (`+namedIn("o.raw", "$2")+` OR `+namedIn("o.raw", "$3")+`) AND o.uri <> $4 AND NOT `+isRequest+`
			ORDER BY o.uri, a.published)
		INSERT INTO conversation_entries (conversation_id, n, seq, kind, object_uri, own, at)
		SELECT $1, -row_number() OVER (ORDER BY published DESC, uri DESC), 0, 'note', uri, own, published FROM earlier ORDER BY published DESC, uri DESC LIMIT $5
		ON CONFLICT DO NOTHING`, id, n.Partner, n.User, n.Object, maxEarlier)
	return err
}

// PairConversation returns the conversation with an actor that no other one continues, nil when
// there is none, and lets no other transaction change it.
func (t *Tx) PairConversation(ctx context.Context, partner vocab.ID) (*Conversation, error) {
	return one[Conversation](ctx, t, "read conversation with actor", `SELECT `+conversationColumns+` FROM conversations
		WHERE partner_uri = $1 AND successor_uri IS NULL FOR UPDATE`, partner)
}

// Kinds of entries of a conversation, besides those of its log.
const (
	EntryNote      = "note"
	EntryUpgraded  = "upgraded"
	EntryClosed    = "closed"
	EntrySuccessor = "successor"
)

// addEntry begins a statement that changes conversations, and numbers an entry that tells of it.
const addEntry = `UPDATE conversations c SET entries = c.entries + 1`

// UpgradePair makes a conversation of two encrypted, for good. The URI, host and group are those
// that its devices have from now on; the host is its admin.
func (t *Tx) UpgradePair(ctx context.Context, c Conversation, own bool, now time.Time) error {
	_, err := t.execBeside(ctx, "upgrade conversation", `WITH changed AS (`+addEntry+`, mode = 'encrypted', uri = $2, host_uri = $3, group_id = $4, upgraded_at = $5
			WHERE id = $1 RETURNING id, entries),
		roles AS (UPDATE conversation_members SET role = CASE WHEN actor_uri = $3 THEN 'admin' ELSE 'member' END WHERE conversation_id = $1)
		INSERT INTO conversation_entries (conversation_id, n, seq, kind, own, at) SELECT id, entries, `+lastSeqOf("changed.id")+`, 'upgraded', $6, $5 FROM changed`,
		c.ID, c.URI, c.Host, c.GroupID, now, own)
	return err
}

// BeginUpgrade gives a federated conversation the MLS group that it is to become. A group that
// nobody else has joined yet makes room for the next.
func (t *Tx) BeginUpgrade(ctx context.Context, id uuid.UUID, group string) error {
	if _, err := t.execBeside(ctx, "give up the upgrade", `DELETE FROM mls_conversations WHERE id = $1`, id); err != nil {
		return err
	}
	_, err := t.execBeside(ctx, "begin upgrade", `UPDATE conversations SET group_id = $2 WHERE id = $1`, id, group)
	return err
}

// closeConversations ends for good the encrypted conversations of a condition on c that go on: they
// can be read, and nothing is written. It returns their URIs.
func (t *Tx) closeConversations(ctx context.Context, own bool, now time.Time, of string, args ...any) (closed []vocab.ID, err error) {
	err = t.query(ctx, "close conversations", column(&closed), `WITH changed AS (`+addEntry+`, closed_at = $1 WHERE c.closed_at IS NULL AND c.mode = 'encrypted' AND `+of+` RETURNING id, entries, uri),
		hosted AS (UPDATE mls_conversations SET status = 'closed', reset_group_id = NULL, updated_at = $1 WHERE id IN (SELECT id FROM changed)),
		joined AS (UPDATE mls_joined SET status = 'closed', reset_group_id = NULL, updated_at = $1 WHERE id IN (SELECT id FROM changed)),
		told AS (INSERT INTO conversation_entries (conversation_id, n, seq, kind, own, at) SELECT id, entries, `+lastSeqOf("changed.id")+`, 'closed', $2, $1 FROM changed)
		SELECT uri FROM changed ORDER BY uri`, append([]any{now, own}, args...)...)
	return closed, err
}

// ClosePair closes the encrypted conversation of the user with an actor alone. own says whether it
// ends by the user's doing.
func (t *Tx) ClosePair(ctx context.Context, partner vocab.ID, own bool, now time.Time) ([]vocab.ID, error) {
	return t.closeConversations(ctx, own, now, `c.partner_uri = $3`, partner)
}

// CloseHostedBy closes the conversations that an actor put in order who is gone, and that of the
// user with it alone.
func (t *Tx) CloseHostedBy(ctx context.Context, host vocab.ID, now time.Time) ([]vocab.ID, error) {
	return t.closeConversations(ctx, false, now, `(c.host_uri = $3 OR c.partner_uri = $3)`, host)
}

// ContinueConversation notes that another conversation continues one, and reports whether none did.
func (t *Tx) ContinueConversation(ctx context.Context, id uuid.UUID, successor vocab.ID, own bool, now time.Time) (bool, error) {
	n, err := t.execBeside(ctx, "continue conversation", `WITH changed AS (`+addEntry+`, successor_uri = $2 WHERE id = $1 AND successor_uri IS NULL RETURNING id, entries)
		INSERT INTO conversation_entries (conversation_id, n, seq, kind, own, at) SELECT id, entries, `+lastSeqOf("changed.id")+`, 'successor', $3, $4 FROM changed`,
		id, successor, own, now)
	return n == 1, err
}
