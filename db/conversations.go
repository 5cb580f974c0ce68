package db

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

// Conversation is one that the user takes part in.
type Conversation struct {
	ID        uuid.UUID
	URI       vocab.ID
	Mode      string
	Host      vocab.ID // the actor whose server puts it in order
	GroupID   string   // of the MLS group now; empty in a federated one that is not being upgraded
	ReadSeq   int64    // up to which the user has read its log
	CreatedAt time.Time

	Partner     vocab.ID // the other actor of a conversation of two; else empty
	ReadEntry   int64    // up to which the user has read its other entries
	UpgradedAt  *time.Time
	ClosedAt    *time.Time // nothing is written any more since then
	Predecessor vocab.ID   // the URI of the conversation that it continues
	Successor   vocab.ID   // the URI of the one that continues it
}

const conversationColumns = `id, uri, mode, host_uri, coalesce(group_id, ''), last_read_seq, created_at,
	coalesce(partner_uri, ''), read_entry, upgraded_at, closed_at, coalesce(predecessor_uri, ''), coalesce(successor_uri, '')`

// AddConversation writes down a conversation that the user takes part in.
func (t *Tx) AddConversation(ctx context.Context, c Conversation) error {
	_, err := t.execBeside(ctx, "add conversation", `INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at, partner_uri, predecessor_uri)
		VALUES ($1, $2, $3, $4, nullif($5, ''), $6, nullif($7, ''), nullif($8, ''))`, c.ID, c.URI, c.Mode, c.Host, c.GroupID, c.CreatedAt, c.Partner, c.Predecessor)
	return err
}

// IsTakenGroup reports whether err is that a conversation has the MLS group already.
func IsTakenGroup(err error) bool { return postgres.Violates(err, "conversations_group_id_key") }

// Conversation returns a conversation that the user takes part in, nil when there is none.
func (t *Tx) Conversation(ctx context.Context, id uuid.UUID) (*Conversation, error) {
	return one[Conversation](ctx, t, "read conversation", `SELECT `+conversationColumns+` FROM conversations WHERE id = $1`, id)
}

// MarkConversationRead notes that the user has read a conversation up to a number. The mark never
// falls.
func (t *Tx) MarkConversationRead(ctx context.Context, id uuid.UUID, seq int64) error {
	_, err := t.execBeside(ctx, "mark conversation read", `UPDATE conversations SET last_read_seq = greatest(last_read_seq, $2) WHERE id = $1`, id, seq)
	return err
}

// Roles of members.
const (
	RoleAdmin  = "admin"
	RoleMember = "member"
)

// ConversationMember is an actor who is or was in a conversation.
type ConversationMember struct {
	Actor      vocab.ID
	Role       string
	JoinedSeq  int64  // what came later is the member's to read
	LeftSeq    *int64 // nil while it is a member
	Leaving    bool   // it asked to be removed
	RejoinedAt *time.Time
}

// IsIn reports whether the actor is a member now.
func (m *ConversationMember) IsIn() bool { return m != nil && m.LeftSeq == nil }

const memberColumns = `actor_uri, role, joined_seq, left_seq, leaving, rejoined_at`

// ConversationMember returns what an actor is to a conversation, nil when it never was in it.
func (t *Tx) ConversationMember(ctx context.Context, id uuid.UUID, actor vocab.ID) (*ConversationMember, error) {
	return one[ConversationMember](ctx, t, "read member", `SELECT `+memberColumns+` FROM conversation_members WHERE conversation_id = $1 AND actor_uri = $2`, id, actor)
}

// MembersAmong returns what actors are to a conversation: of one that never was in it nothing.
func (t *Tx) MembersAmong(ctx context.Context, id uuid.UUID, actors []vocab.ID) (map[vocab.ID]ConversationMember, error) {
	all, err := collect[ConversationMember](ctx, t, "read members", `SELECT `+memberColumns+` FROM conversation_members WHERE conversation_id = $1 AND actor_uri = ANY($2::text[])`, id, texts(actors))
	among := make(map[vocab.ID]ConversationMember, len(all))
	for _, m := range all {
		among[m.Actor] = m
	}
	return among, err
}

// ConversationMembers returns the actors who are in a conversation now.
func (t *Tx) ConversationMembers(ctx context.Context, id uuid.UUID) ([]ConversationMember, error) {
	return collect[ConversationMember](ctx, t, "list members", `SELECT `+memberColumns+` FROM conversation_members
		WHERE conversation_id = $1 AND left_seq IS NULL ORDER BY joined_seq, actor_uri`, id)
}

// JoinConversation makes actors members from a number on. One that is a member stays as it was.
func (t *Tx) JoinConversation(ctx context.Context, id uuid.UUID, actors []vocab.ID, role string, seq int64) error {
	_, err := t.execBeside(ctx, "add members", `INSERT INTO conversation_members AS m (conversation_id, actor_uri, role, joined_seq)
		SELECT $1, unnest($2::text[]), $3, $4 ON CONFLICT (conversation_id, actor_uri)
		DO UPDATE SET role = excluded.role, joined_seq = excluded.joined_seq, left_seq = NULL, leaving = false WHERE m.left_seq IS NOT NULL`, id, texts(actors), role, seq)
	return err
}

// LeaveConversation ends the membership of actors with a number.
func (t *Tx) LeaveConversation(ctx context.Context, id uuid.UUID, actors []vocab.ID, seq int64) error {
	_, err := t.execBeside(ctx, "remove members", `UPDATE conversation_members SET left_seq = $3, leaving = false
		WHERE conversation_id = $1 AND actor_uri = ANY($2::text[]) AND left_seq IS NULL`, id, texts(actors), seq)
	return err
}

// AskToLeave notes that a member wants to be removed.
func (t *Tx) AskToLeave(ctx context.Context, id uuid.UUID, actor vocab.ID) error {
	_, err := t.execBeside(ctx, "note who leaves", `UPDATE conversation_members SET leaving = true WHERE conversation_id = $1 AND actor_uri = $2 AND left_seq IS NULL`, id, actor)
	return err
}

// NoteRejoin notes when a device of a member came back that had lost its state.
func (t *Tx) NoteRejoin(ctx context.Context, id uuid.UUID, actor vocab.ID, at time.Time) error {
	_, err := t.execBeside(ctx, "note who came back", `UPDATE conversation_members SET rejoined_at = $3 WHERE conversation_id = $1 AND actor_uri = $2`, id, actor, at)
	return err
}

// SharesConversation reports whether an actor is in an encrypted conversation that the user takes
// part in: one that the user hosts, or that a device of the user has joined. Nobody shares one by a
// Welcome alone.
func (t *Tx) SharesConversation(ctx context.Context, actor vocab.ID) (shares bool, err error) {
	err = t.row(ctx, "look for a shared conversation", `SELECT EXISTS (SELECT FROM conversation_members m JOIN conversations c ON c.id = m.conversation_id
		WHERE m.actor_uri = $1 AND m.left_seq IS NULL AND c.mode = 'encrypted' AND NOT EXISTS (SELECT FROM mls_joined j WHERE j.id = m.conversation_id AND NOT j.confirmed))`, []any{actor}, &shares)
	return shares, err
}
