package db

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Kinds of messages that only an inbox has.
const (
	KindWelcome = "welcome"
	KindOpaque  = "opaque" // nobody but its reader can tell
)

// InboxEntry is a message of MLS that came for the user, or that the user sent where no host puts
// messages in order.
type InboxEntry struct {
	Arrival      int64      // its place in the order of coming; AddInboxEntry gives it
	Conversation *uuid.UUID // nil: of a group that the user is not known to be in
	Group        string     // as the message says; empty when it does not
	Seq          *int64     // of the host's log; nil: not put in order
	Generation   int32
	Epoch        int64 // in which it was made
	Kind         string
	Sender       vocab.ID
	Object       vocab.ID
	Content      []byte
	Hash         []byte // SHA-256 of the content
	Receipt      []byte // of the host, which holds; nil: there is none
	Blocked      bool   // its sender was blocked when it came
	Activity     string // as it came, without its content; empty: it was read from the host's log
	ContentAt    int32  // where the content stands in the activity; -1: it was not taken out
	At           time.Time
}

const inboxColumns = `arrival, conversation_id, group_id, seq, generation, epoch, kind, sender_uri, object_uri, content, content_hash, receipt, blocked, activity, content_at, received_at`

// LockInbox makes other transactions wait that write to the inbox of messages, so that the order
// of coming is that in which readers see them.
func (t *Tx) LockInbox(ctx context.Context) error { return t.Lock(ctx, "mls inbox") }

// AddInboxEntry keeps a message, and reports whether it is new. LockInbox comes before it.
func (t *Tx) AddInboxEntry(ctx context.Context, e InboxEntry) (bool, error) {
	n, err := t.execBeside(ctx, "keep message", `INSERT INTO mls_inbox (conversation_id, group_id, seq, generation, epoch, kind, sender_uri, object_uri, content, content_hash, receipt, blocked, activity, content_at, received_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING`, e.Conversation, e.Group, e.Seq, e.Generation, e.Epoch, e.Kind, e.Sender,
		e.Object, e.Content, e.Hash, e.Receipt, e.Blocked, e.Activity, e.ContentAt, e.At)
	return n == 1, err
}

// InboxEntriesLike returns the messages of a conversation that have the content of e, or its
// number, or are commits of the epoch of e, if that is one.
func (t *Tx) InboxEntriesLike(ctx context.Context, e InboxEntry) ([]InboxEntry, error) {
	return collect[InboxEntry](ctx, t, "look for messages like it", `SELECT `+inboxColumns+` FROM mls_inbox
		WHERE conversation_id = $1 AND (content_hash = $2 AND kind <> 'opaque' OR seq = $3 OR kind = 'commit' AND $6 = 'commit' AND generation = $4 AND epoch = $5) ORDER BY arrival`,
		e.Conversation, e.Hash, e.Seq, e.Generation, e.Epoch, e.Kind)
}

// PlaceInboxEntry gives a message that came before its host had put it in order what the host says
// of it.
func (t *Tx) PlaceInboxEntry(ctx context.Context, arrival int64, e InboxEntry) error {
	_, err := t.execBeside(ctx, "put message in order", `UPDATE mls_inbox SET seq = $2, generation = $3, sender_uri = $4, receipt = $5 WHERE arrival = $1 AND seq IS NULL`,
		arrival, e.Seq, e.Generation, e.Sender, e.Receipt)
	return err
}

// InboxHash returns the hash of the message of a conversation with that number, nil when it is not
// here.
func (t *Tx) InboxHash(ctx context.Context, id uuid.UUID, seq int64) (hash, receipt []byte, err error) {
	err = t.row(ctx, "read hash", `SELECT (SELECT content_hash FROM mls_inbox WHERE conversation_id = $1 AND seq = $2), (SELECT receipt FROM mls_inbox WHERE conversation_id = $1 AND seq = $2)`,
		[]any{id, seq}, &hash, &receipt)
	return hash, receipt, err
}

// InboxLog returns up to n messages of a conversation after a number and up to another one, the
// oldest first, and no more than about so many bytes of them.
func (t *Tx) InboxLog(ctx context.Context, id uuid.UUID, after, upto int64, n, bytes int) (out []InboxEntry, err error) {
	err = t.query(ctx, "read messages of conversation", upTo(bytes, sizeOfEntry, &out), `SELECT `+inboxColumns+` FROM mls_inbox
		WHERE conversation_id = $1 AND seq > $2 AND seq <= $3 AND kind <> 'welcome' ORDER BY seq LIMIT $4`, id, after, upto, n)
	return out, err
}

func sizeOfEntry(e InboxEntry) int { return len(e.Content) + len(e.Activity) }

// InboxMessages returns up to n messages after one in the order of coming, the oldest first, and
// no more than about so many bytes of them.
func (t *Tx) InboxMessages(ctx context.Context, after int64, n, bytes int) (out []InboxEntry, err error) {
	err = t.query(ctx, "read messages", upTo(bytes, sizeOfEntry, &out), `SELECT `+inboxColumns+` FROM mls_inbox WHERE arrival > $1 ORDER BY arrival LIMIT $2`, after, n)
	return out, err
}

// NewestInboxMessages returns up to n messages before one in the order of coming, the newest
// first. before is zero for the end.
func (t *Tx) NewestInboxMessages(ctx context.Context, before int64, n, bytes int) (out []InboxEntry, err error) {
	err = t.query(ctx, "read newest messages", upTo(bytes, sizeOfEntry, &out), `SELECT `+inboxColumns+` FROM mls_inbox WHERE $1 = 0 OR arrival < $1 ORDER BY arrival DESC LIMIT $2`, before, n)
	return out, err
}

// CountInboxMessages returns how many messages the user's devices may read.
func (t *Tx) CountInboxMessages(ctx context.Context) (n int64, err error) {
	err = t.row(ctx, "count messages", `SELECT count(*) FROM mls_inbox`, nil, &n)
	return n, err
}

// CountUnplaced returns how many messages and Welcomes of a sender wait for a group that the user
// is not known to be in, and how many of all senders.
func (t *Tx) CountUnplaced(ctx context.Context, sender vocab.ID) (ofSender, all int, err error) {
	err = t.row(ctx, "count messages of unknown groups", `SELECT count(*) FILTER (WHERE sender_uri = $1), count(*) FROM
		(SELECT sender_uri FROM mls_inbox WHERE conversation_id IS NULL UNION ALL SELECT sender_uri FROM mls_welcomes WHERE conversation_id IS NULL) AS w`, []any{sender}, &ofSender, &all)
	return ofSender, all, err
}

// PlaceGroup gives the messages of a group that came before its conversation was known to the
// conversation, numbered after its last one as they came, and returns how many.
func (t *Tx) PlaceGroup(ctx context.Context, id uuid.UUID, group string, last int64) (n int64, err error) {
	return t.execBeside(ctx, "place messages", `UPDATE mls_inbox i SET conversation_id = $1, seq = $3 + p.n FROM
		(SELECT arrival, row_number() OVER (ORDER BY arrival) AS n FROM mls_inbox WHERE conversation_id IS NULL AND group_id = $2 AND kind <> 'opaque') AS p WHERE i.arrival = p.arrival`, id, group, last)
}

// JoinedConversation is a conversation that the user takes part in and somebody else puts in
// order, or nobody, at the state that is known here.
type JoinedConversation struct {
	ID           uuid.UUID
	URI          vocab.ID
	Host         vocab.ID // empty: nobody puts it in order
	GroupID      string
	Generation   int32
	Epoch        int64
	LastSeq      int64 // the highest that was heard of
	WholeSeq     int64 // up to which none is missing
	RosterSeq    int64 // of the entry that told last who is in it
	Status       string
	ResetGroupID string // the group that comes next; empty unless a reset is pending
	FormerGroups []string
	Confirmed    bool // a device of the user has joined
	ReadSeq      int64
}

// StatusFrozen is the status of a conversation whose host was shown to tell its members different
// things.
const StatusFrozen = "frozen"

const joinedQuery = `SELECT j.id, c.uri, c.host_uri, c.group_id, j.generation, j.epoch, j.last_seq, j.whole_seq, j.roster_seq, j.status, coalesce(j.reset_group_id, ''), j.former_groups, j.confirmed, c.last_read_seq
	FROM mls_joined j JOIN conversations c USING (id) WHERE `

// JoinedConversation returns a conversation that the user has joined, nil when there is none.
func (t *Tx) JoinedConversation(ctx context.Context, id uuid.UUID) (*JoinedConversation, error) {
	return one[JoinedConversation](ctx, t, "read joined conversation", joinedQuery+`j.id = $1`, id)
}

// JoinedAt is JoinedConversation by the conversation's URI.
func (t *Tx) JoinedAt(ctx context.Context, uri vocab.ID) (*JoinedConversation, error) {
	return one[JoinedConversation](ctx, t, "read joined conversation", joinedQuery+`c.uri = $1`, uri)
}

// JoinedByGroup is JoinedConversation by its MLS group, now or formerly.
func (t *Tx) JoinedByGroup(ctx context.Context, group string) (*JoinedConversation, error) {
	return one[JoinedConversation](ctx, t, "read joined conversation", joinedQuery+`c.group_id = $1 OR $1 = ANY(j.former_groups) ORDER BY (c.group_id = $1) DESC LIMIT 1`, group)
}

// IsGroupKnown reports whether any conversation of the user has, or had, an MLS group.
func (t *Tx) IsGroupKnown(ctx context.Context, group string) (is bool, err error) {
	err = t.row(ctx, "look for group", `SELECT EXISTS (SELECT FROM conversations WHERE group_id = $1) OR EXISTS (SELECT FROM mls_joined WHERE $1 = ANY(former_groups))
		OR EXISTS (SELECT FROM mls_conversations WHERE $1 = ANY(former_groups) OR reset_group_id = $1)`, []any{group}, &is)
	return is, err
}

// AddJoined writes down a conversation that the user joins. One of two may be there already.
func (t *Tx) AddJoined(ctx context.Context, j JoinedConversation, now time.Time) error {
	_, err := t.execBeside(ctx, "add conversation", `INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at)
		VALUES ($1, $2, 'encrypted', $3, $4, $5) ON CONFLICT (id) DO NOTHING`, j.ID, j.URI, j.Host, j.GroupID, now)
	if err != nil {
		return err
	}
	_, err = t.execBeside(ctx, "join conversation", `INSERT INTO mls_joined (id, generation, epoch, last_seq, whole_seq, roster_seq, status, former_groups, confirmed, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, '{}', $8, $9)`, j.ID, j.Generation, j.Epoch, j.LastSeq, j.WholeSeq, j.RosterSeq, j.Status, j.Confirmed, now)
	return err
}

// SaveJoined writes the state of a joined conversation down, and returns up to which number none
// is missing now.
func (t *Tx) SaveJoined(ctx context.Context, j JoinedConversation, now time.Time) (whole int64, err error) {
	err = t.row(ctx, "save joined conversation", `WITH known AS (UPDATE conversations SET group_id = $2 WHERE id = $1 AND group_id <> $2)
		UPDATE mls_joined SET generation = $3, epoch = $4, last_seq = $5, roster_seq = $7, status = $8, reset_group_id = nullif($9, ''), former_groups = $10, confirmed = $11, updated_at = $12,
			whole_seq = (SELECT coalesce(max(seq), $6) FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS n FROM mls_inbox WHERE conversation_id = $1 AND seq > $6) AS later WHERE seq = $6 + n)
		WHERE id = $1 RETURNING whole_seq`,
		[]any{j.ID, j.GroupID, j.Generation, j.Epoch, j.LastSeq, j.WholeSeq, j.RosterSeq, j.Status, j.ResetGroupID, j.FormerGroups, j.Confirmed, now}, &whole)
	return whole, err
}

// NoteBehind tells subscribers that messages of a conversation may be missing here, which its host
// has.
func (t *Tx) NoteBehind(id uuid.UUID, isGap bool) { t.behind = append(t.behind, Behind{id, isGap}) }

// Behind is a conversation of which messages may be missing.
type Behind struct {
	Conversation uuid.UUID
	IsGap        bool // a later one is here
}

// ConfirmJoined notes that a device of the user has joined a conversation.
func (t *Tx) ConfirmJoined(ctx context.Context, id uuid.UUID) error {
	_, err := t.execBeside(ctx, "confirm conversation", `UPDATE mls_joined SET confirmed = true WHERE id = $1 AND NOT confirmed`, id)
	return err
}

// CountInvitations returns how many conversations the user was let into without having joined:
// those of one host, and all.
func (t *Tx) CountInvitations(ctx context.Context, host vocab.ID) (ofHost, all int, err error) {
	err = t.row(ctx, "count invitations", `SELECT count(*) FILTER (WHERE c.host_uri = $1), count(*) FROM mls_joined j JOIN conversations c USING (id) WHERE NOT j.confirmed`, []any{host}, &ofHost, &all)
	return ofHost, all, err
}

// SetRoster makes these actors the members of a conversation, as its host says at a number.
func (t *Tx) SetRoster(ctx context.Context, id uuid.UUID, actors []vocab.ID, roles []string, seq int64) error {
	_, err := t.execBeside(ctx, "set roster", `WITH gone AS (UPDATE conversation_members SET left_seq = greatest($4, joined_seq + 1), leaving = false
			WHERE conversation_id = $1 AND left_seq IS NULL AND actor_uri <> ALL($2::text[]))
		INSERT INTO conversation_members AS m (conversation_id, actor_uri, role, joined_seq) SELECT $1, a, r, 0 FROM unnest($2::text[], $3::text[]) AS u(a, r)
		ON CONFLICT (conversation_id, actor_uri) DO UPDATE SET role = excluded.role, left_seq = NULL, leaving = m.leaving AND m.left_seq IS NULL`, id, texts(actors), roles, seq)
	return err
}

// HasKeyPackage reports whether the user has published a key package that was not revoked.
func (t *Tx) HasKeyPackage(ctx context.Context, ref []byte) (has bool, err error) {
	err = t.row(ctx, "look for key package", `SELECT EXISTS (SELECT FROM mls_key_packages WHERE ref = $1 AND state <> 'revoked')`, []any{ref}, &has)
	return has, err
}

// IsTakenURI reports whether err is that there is a conversation with the URI already.
func IsTakenURI(err error) bool { return postgres.Violates(err, "conversations_uri_key") }
