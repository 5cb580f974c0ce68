package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Modes of conversations.
const (
	ModeFederated = "federated" // private Notes of two actors
	ModeEncrypted = "encrypted" // an MLS group
)

// Conversation is a conversation that the user takes part in.
type Conversation struct {
	ID        uuid.UUID
	URI       vocab.ID
	Mode      string
	Host      vocab.ID // the actor whose server orders its messages; empty: it has no host
	GroupID   string   // of the current MLS group; empty if it is federated and not being upgraded
	ReadSeq   int64    // the number up to which the user has read its log
	CreatedAt time.Time

	Partner     vocab.ID // the other actor of a conversation of two; else empty
	ReadEntry   int64    // the number up to which the user has read the entries that are not in its log
	UpgradedAt  *time.Time
	ClosedAt    *time.Time // from then on nothing can be written
	Predecessor vocab.ID   // the URI of the conversation that it continues
	Successor   vocab.ID   // the URI of the conversation that continues it
}

const conversationColumns = `id, uri, mode, host_uri AS host, coalesce(group_id, '') AS group_id, last_read_seq AS read_seq, created_at,
	coalesce(partner_uri, '') AS partner, read_entry, upgraded_at, closed_at, coalesce(predecessor_uri, '') AS predecessor, coalesce(successor_uri, '') AS successor`

// Add stores a conversation that the user takes part in.
func (t Conversations) Add(ctx context.Context, c Conversation) error {
	_, err := t.execBeside(ctx, "add conversation", `INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at, partner_uri, predecessor_uri)
		VALUES (@id, @uri, @mode, @host, nullif(@group, ''), @created, nullif(@partner, ''), nullif(@predecessor, ''))`,
		named{"id": c.ID, "uri": c.URI, "mode": c.Mode, "host": c.Host, "group": c.GroupID, "created": c.CreatedAt, "partner": c.Partner, "predecessor": c.Predecessor})
	return err
}

// IsTakenGroup reports whether err says that another confirmed conversation already has the MLS
// group. A conversation that the user hosts is confirmed, and so is a federated one. An encrypted
// one without a host, or with another host, is confirmed once a device of the user has joined it.
func IsTakenGroup(err error) bool { return postgres.Violates(err, "conversations_claimed") }

// Find returns a conversation that the user takes part in, nil when there is none.
func (t Conversations) Find(ctx context.Context, id uuid.UUID) (*Conversation, error) {
	return one[Conversation](ctx, t.tx, "read conversation", `SELECT `+conversationColumns+` FROM conversations WHERE id = $1`, id)
}

// FindAt does what Find does, but by the conversation's URI. It locks the conversation's row.
func (t Conversations) FindAt(ctx context.Context, uri vocab.ID) (*Conversation, error) {
	return one[Conversation](ctx, t.tx, "read conversation", `SELECT `+conversationColumns+` FROM conversations WHERE uri = $1 FOR UPDATE`, uri)
}

// MarkRead moves the two marks of the user in a conversation. One is the number up to which the
// user has read the log, and the other the number up to which the user has read the entries
// outside the log. It returns the conversation, or nil if neither mark moved. A mark never goes
// back, and never goes beyond the last message or entry that is stored here. In a joined
// conversation messages before that last one may be missing.
func (t Conversations) MarkRead(ctx context.Context, id uuid.UUID, seq, entry int64) (*Conversation, error) {
	readSeq := `least($2, greatest(` + lastSeqOf("conversations.id") + `, (SELECT max(seq) FROM mls_inbox m WHERE m.conversation_id = conversations.id)))`
	readEntry := `least($3, entries)`
	return one[Conversation](ctx, t.tx, "mark conversation read", `UPDATE conversations SET last_read_seq = greatest(last_read_seq, `+readSeq+`), read_entry = greatest(read_entry, `+readEntry+`)
		WHERE id = $1 AND (`+readSeq+` > last_read_seq OR `+readEntry+` > read_entry) RETURNING `+conversationColumns, id, seq, entry)
}

// Roles of members.
const (
	RoleAdmin  = "admin"
	RoleMember = "member"
)

// ConversationMember is an actor who is or was in a conversation.
type ConversationMember struct {
	Actor      vocab.ID   `json:"actor"`
	Role       string     `json:"role"`
	JoinedSeq  int64      `json:"joined_seq"` // the member may read the messages with higher numbers
	LeftSeq    *int64     `json:"-"`          // nil while it is a member
	Leaving    bool       `json:"leaving"`    // it asked to be removed
	RejoinedAt *time.Time `json:"-"`
	// Lightweb says that the member's server accepts messages from the host of a conversation. If
	// it is false, that server supports only the SWICG draft.
	Lightweb bool `json:"-"`
}

// IsIn reports whether the actor is a member now.
func (m *ConversationMember) IsIn() bool { return m != nil && m.LeftSeq == nil }

const memberColumns = `actor_uri AS actor, role, joined_seq, left_seq, leaving, rejoined_at, lightweb`

// FindMember returns an actor's membership of a conversation, or nil if the actor never was a
// member.
func (t Conversations) FindMember(ctx context.Context, id uuid.UUID, actor vocab.ID) (*ConversationMember, error) {
	if r := t.ahead.asked; r.isBy(actor) && r.conversation == id {
		return &r.caller.ConversationMember, nil
	}
	return one[ConversationMember](ctx, t.tx, "read member", `SELECT `+memberColumns+` FROM conversation_members WHERE conversation_id = $1 AND actor_uri = $2`, id, actor)
}

// FindMembers returns the memberships of actors in a conversation. An actor that never was a
// member is not in the map.
func (t Conversations) FindMembers(ctx context.Context, id uuid.UUID, actors []vocab.ID) (map[vocab.ID]ConversationMember, error) {
	all, err := collect[ConversationMember](ctx, t.tx, "read members", `SELECT `+memberColumns+` FROM conversation_members WHERE conversation_id = $1 AND actor_uri = ANY($2::text[])`, id, texts(actors))
	among := make(map[vocab.ID]ConversationMember, len(all))
	for _, m := range all {
		among[m.Actor] = m
	}
	return among, err
}

// ListMembers returns the current members of a conversation.
func (t Conversations) ListMembers(ctx context.Context, id uuid.UUID) ([]ConversationMember, error) {
	return collect[ConversationMember](ctx, t.tx, "list members", `SELECT `+memberColumns+` FROM conversation_members
		WHERE conversation_id = $1 AND left_seq IS NULL ORDER BY joined_seq, actor_uri`, id)
}

// Join makes actors members of a conversation. They may read the messages of its log after the
// number seq. Join leaves current members as they are.
func (t Conversations) Join(ctx context.Context, id uuid.UUID, actors []vocab.ID, role string, seq int64) error {
	_, err := t.execBeside(ctx, "add members", `INSERT INTO conversation_members AS m (conversation_id, actor_uri, role, joined_seq)
		SELECT @id, a, @role, @seq FROM (SELECT DISTINCT unnest(@actors::text[])) AS named (a) ON CONFLICT (conversation_id, actor_uri)
		DO UPDATE SET role = excluded.role, joined_seq = excluded.joined_seq, left_seq = NULL, leaving = false, lightweb = true WHERE m.left_seq IS NOT NULL`,
		named{"id": id, "actors": texts(actors), "role": role, "seq": seq})
	return err
}

// Forget removes members from a conversation, as if they had never been members.
func (t Conversations) Forget(ctx context.Context, id uuid.UUID, actors []vocab.ID) error {
	_, err := t.execBeside(ctx, "forget members", `DELETE FROM conversation_members WHERE conversation_id = $1 AND actor_uri = ANY($2::text[])`, id, texts(actors))
	return err
}

// Leave ends the membership of actors, and stores seq as the number of the log at which it ended.
func (t Conversations) Leave(ctx context.Context, id uuid.UUID, actors []vocab.ID, seq int64) error {
	_, err := t.execBeside(ctx, "remove members", `UPDATE conversation_members SET left_seq = $3, leaving = false
		WHERE conversation_id = $1 AND actor_uri = ANY($2::text[]) AND left_seq IS NULL`, id, texts(actors), seq)
	return err
}

// AskToLeave stores that a member wants to be removed.
func (t Conversations) AskToLeave(ctx context.Context, id uuid.UUID, actor vocab.ID) error {
	_, err := t.execBeside(ctx, "note who leaves", `UPDATE conversation_members SET leaving = true WHERE conversation_id = $1 AND actor_uri = $2 AND left_seq IS NULL`, id, actor)
	return err
}

// NoteRejoin stores when a member joined again with a device that had lost its state.
func (t Conversations) NoteRejoin(ctx context.Context, id uuid.UUID, actor vocab.ID, at time.Time) error {
	_, err := t.execBeside(ctx, "note who came back", `UPDATE conversation_members SET rejoined_at = $3 WHERE conversation_id = $1 AND actor_uri = $2`, id, actor, at)
	return err
}

// IsShared reports whether an actor is in an encrypted conversation that the user hosts, or that
// a device of the user has joined. A Welcome that no device has confirmed does not count, because
// anybody can send a Welcome. Neither does a conversation of two that is closed, because the two
// have ended their relationship. Members of a closed group may continue it.
func (t Conversations) IsShared(ctx context.Context, actor vocab.ID) (shares bool, err error) {
	err = t.row(ctx, "look for a shared conversation", `SELECT EXISTS (SELECT FROM conversation_members m JOIN conversations c ON c.id = m.conversation_id
		WHERE m.actor_uri = $1 AND m.left_seq IS NULL AND c.mode = 'encrypted' AND c.confirmed AND (c.closed_at IS NULL OR c.partner_uri IS NULL))`, []any{actor}, &shares)
	return shares, err
}
