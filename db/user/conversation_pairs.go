package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// PairNote is a private Note between the user and one other actor.
type PairNote struct {
	User, Partner vocab.ID
	Object        vocab.ID // empty: AddNote adds no entry
	Own           bool     // the user wrote it
	At            time.Time
}

// maxEarlier limits how many earlier Notes are put into a new conversation.
const maxEarlier = 1000

// AddNote puts a Note into the conversation of the user and the partner. If there is no such
// conversation, AddNote makes one that begins with the latest Notes that the two exchanged
// before. It returns the conversation, and reports whether the conversation is new. It locks the
// conversation's row.
func (t Pairs) AddNote(ctx context.Context, n PairNote) (*Conversation, bool, error) {
	type row struct {
		Made bool
		ID   uuid.UUID
	}
	id := uuid.Must(uuid.NewV7())
	done, err := one[row](ctx, t.tx, "add note to conversation", `WITH pair AS (
			INSERT INTO conversations (id, uri, mode, host_uri, partner_uri, entries, created_at) VALUES (@id, @uri, 'federated', @user, @partner, 1, @at)
			ON CONFLICT (partner_uri) WHERE successor_uri IS NULL DO UPDATE SET entries = conversations.entries + 1 RETURNING id, entries),
		members AS (INSERT INTO conversation_members (conversation_id, actor_uri, role, joined_seq)
			SELECT id, m.actor, m.role, 0 FROM pair, (VALUES (@user, 'admin'), (@partner, 'member')) AS m (actor, role) WHERE id = @id),
		entry AS (INSERT INTO conversation_entries (conversation_id, n, seq, kind, object_uri, own, at)
			SELECT id, entries, `+lastSeqOf("pair.id")+`, 'note', @object, @own, @at FROM pair WHERE @object <> '' ON CONFLICT (conversation_id, object_uri) DO NOTHING)
		SELECT id = @id AS made, id FROM pair`,
		named{"id": id, "uri": n.User + "/conversations/" + vocab.ID(id.String()), "user": n.User, "partner": n.Partner, "at": n.At, "object": n.Object, "own": n.Own})
	if err != nil {
		return nil, false, err
	}
	if done.Made {
		if err := t.addEarlierNotes(ctx, done.ID, n); err != nil {
			return nil, false, err
		}
	}
	c, err := t.all.Conversations.Find(ctx, done.ID)
	return c, done.Made, err
}

// lastSeqOf is the last number of a conversation's log, 0 when it has no log. In a joined
// conversation it is the last number up to which no message is missing.
func lastSeqOf(id string) string {
	return `coalesce((SELECT last_seq FROM mls_conversations WHERE id = ` + id + `), (SELECT whole_seq FROM mls_joined WHERE id = ` + id + `), 0)`
}

// addEarlierNotes puts the Notes that the user and the partner exchanged before into their
// conversation. The numbers of these entries are negative, so that they come before all later
// entries.
func (t Pairs) addEarlierNotes(ctx context.Context, id uuid.UUID, n PairNote) error {
	_, err := t.execBeside(ctx, "add earlier notes", `WITH earlier AS (
			SELECT DISTINCT ON (o.uri) o.uri, a.direction = 'outbound' AS own, a.published FROM activities a JOIN objects o ON o.uri = a.object_uri
			WHERE a.type = '`+vocab.Create+`' AND (a.direction = 'inbound' AND a.actor_uri = @partner OR a.direction = 'outbound' AND `+sentTo("a.raw", "@partner")+`)
				AND o.deleted_at IS NULL AND o.raw -> 'type' ? 'Note' AND NOT o.raw ? 'name' AND `+amongIn("o.raw", "jsonb_build_array(@partner::text, @user::text)")+`
				AND (`+namedIn("o.raw", "@partner")+` OR `+namedIn("o.raw", "@user")+`) AND o.uri <> @object AND NOT `+isRequest+`
			ORDER BY o.uri, a.published)
		INSERT INTO conversation_entries (conversation_id, n, seq, kind, object_uri, own, at)
		SELECT @id, -row_number() OVER (ORDER BY published DESC, uri DESC), 0, 'note', uri, own, published FROM earlier ORDER BY published DESC, uri DESC LIMIT @most
		ON CONFLICT DO NOTHING`, named{"id": id, "partner": n.Partner, "user": n.User, "object": n.Object, "most": maxEarlier})
	return err
}

// Find returns the conversation with an actor, or nil if there is none. Conversations that have
// a successor do not count. Find locks the conversation's row.
func (t Pairs) Find(ctx context.Context, partner vocab.ID) (*Conversation, error) {
	return one[Conversation](ctx, t.tx, "read conversation with actor", `SELECT `+conversationColumns+` FROM conversations
		WHERE partner_uri = $1 AND successor_uri IS NULL FOR UPDATE`, partner)
}

// Kinds of a conversation's entries that are not in its log.
const (
	EntryNote      = "note"
	EntryUpgraded  = "upgraded"
	EntryClosed    = "closed"
	EntrySuccessor = "successor"
)

// addEntry begins a statement that adds one entry to each of several conversations. It increases
// the number of entries of each conversation. The rest of the statement must insert the entries.
const addEntry = `UPDATE conversations c SET entries = c.entries + 1`

// Upgrade turns the user's conversation with one other actor into an encrypted one. This cannot
// be undone. The conversation gets the URI, host and group of c, and the host becomes its admin.
func (t Pairs) Upgrade(ctx context.Context, c Conversation, own bool, now time.Time) error {
	_, err := t.execBeside(ctx, "upgrade conversation", `WITH changed AS (`+addEntry+`, mode = 'encrypted', uri = @uri, host_uri = @host, group_id = @group, upgraded_at = @now
			WHERE id = @id RETURNING id, entries),
		roles AS (UPDATE conversation_members SET role = CASE WHEN actor_uri = @host THEN 'admin' ELSE 'member' END WHERE conversation_id = @id)
		INSERT INTO conversation_entries (conversation_id, n, seq, kind, own, at) SELECT id, entries, `+lastSeqOf("changed.id")+`, 'upgraded', @own, @now FROM changed`,
		named{"id": c.ID, "uri": c.URI, "host": c.Host, "group": c.GroupID, "now": now, "own": own})
	return err
}

// BeginUpgrade gives a federated conversation the MLS group to which it is being upgraded. It
// replaces an earlier upgrade in which the partner has not joined yet.
func (t Pairs) BeginUpgrade(ctx context.Context, id uuid.UUID, group string) error {
	if _, err := t.execBeside(ctx, "give up the upgrade", `DELETE FROM mls_conversations WHERE id = $1`, id); err != nil {
		return err
	}
	_, err := t.execBeside(ctx, "begin upgrade", `UPDATE conversations SET group_id = $2 WHERE id = $1`, id, group)
	return err
}
