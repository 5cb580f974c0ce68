package db

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// TimelineEntry is what a conversation shows: a Note, a message of its log, or what became of it.
type TimelineEntry struct {
	Seq      int64  // of the log: its own, or that after which it stands
	N        int64  // of the entries beside the log; 0 for one of the log
	Kind     string // a kind of entry, or of message
	Own      bool
	Sender   vocab.ID // of a message of the log
	Epoch    int64    // of it, and so on
	Content  []byte
	At       time.Time
	Object   vocab.ID
	Raw      json.RawMessage // of a Note
	Readable json.RawMessage
}

// TimelinePlace is where a page of a timeline ends.
type TimelinePlace struct{ Seq, N int64 }

// TimelineEnd is the place after the newest entry.
var TimelineEnd = TimelinePlace{math.MaxInt64, math.MaxInt64}

func (e TimelineEntry) bytes() int { return len(e.Content) + len(e.Raw) + len(e.Readable) }

// maxTimeline is about how many bytes a page of a timeline has.
const maxTimeline = 4 << 20

// Timeline returns up to n entries of a conversation before a place, the newest first, and no more
// than about 4 MiB of them; more tells whether others may follow. The order is one for both: a Note
// stands after the message of the log that was the last when it came.
func (t *Tx) Timeline(ctx context.Context, id uuid.UUID, user vocab.ID, before TimelinePlace, n int) (out []TimelineEntry, more bool, err error) {
	err = t.query(ctx, "read timeline", upTo(maxTimeline, TimelineEntry.bytes, &out), `SELECT * FROM (
		(SELECT e.seq, e.n, e.kind, e.own, '' AS sender, 0::bigint AS epoch, NULL::bytea AS content, e.at, coalesce(e.object_uri, '') AS object, o.raw, o.readable
			FROM conversation_entries e LEFT JOIN objects o ON o.uri = e.object_uri
			WHERE e.conversation_id = $1 AND (e.seq, e.n) < ($2, $3) ORDER BY e.seq DESC, e.n DESC LIMIT $4)
		UNION ALL
		(SELECT seq, 0, kind, sender_uri = $5, sender_uri, epoch, content, created_at, '', NULL, NULL FROM mls_log
			WHERE conversation_id = $1 AND (seq, 0) < ($2, $3) ORDER BY seq DESC LIMIT $4)
		UNION ALL
		(SELECT i.seq, 0, i.kind, i.sender_uri = $5, i.sender_uri, i.epoch, i.content, i.received_at, '', NULL, NULL FROM mls_inbox i JOIN mls_joined j ON j.id = i.conversation_id
			WHERE i.conversation_id = $1 AND i.seq <= j.whole_seq AND i.kind <> 'welcome' AND (i.seq, 0) < ($2, $3) ORDER BY i.seq DESC LIMIT $4)) AS all_kinds
		ORDER BY seq DESC, n DESC LIMIT $4`, id, before.Seq, before.N, n+1, user)
	size := 0
	for _, e := range out {
		size += e.bytes()
	}
	return out[:min(n, len(out))], len(out) > n || size > maxTimeline, err
}

// ListedConversation is a conversation with how much of it the user has not read.
type ListedConversation struct {
	Conversation
	Unread int
}

// unreadOf counts what others wrote that the user has not read: Notes, and messages of the log.
// $1 is the user.
const unreadOf = `(SELECT count(*) FROM conversation_entries e WHERE e.conversation_id = c.id AND e.n > c.read_entry AND e.kind = 'note' AND NOT e.own)
	+ (SELECT count(*) FROM mls_log l JOIN conversation_members m ON m.conversation_id = c.id AND m.actor_uri = $1
		WHERE l.conversation_id = c.id AND l.seq > greatest(c.last_read_seq, m.joined_seq) AND l.kind = 'application' AND l.sender_uri <> $1)
	+ (SELECT count(*) FROM mls_inbox i WHERE i.conversation_id = c.id AND i.seq > c.last_read_seq AND i.kind = 'application' AND i.sender_uri <> $1 AND NOT i.blocked)`

// ListConversations is Conversations with what the user has not read of those that are in its
// database.
func (t *Tx) ListConversations(ctx context.Context, user vocab.ID, after *Place, n int) ([]ListedConversation, error) {
	p := after.orFirst()
	return collect[ListedConversation](ctx, t, "list conversations", `SELECT `+conversationColumns+`, `+unreadOf+` FROM conversations c
		WHERE (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4`, user, p.At, uuid.UUID(p.ID), n)
}

// CountUnreadIn returns how much of a conversation the user has not read.
func (t *Tx) CountUnreadIn(ctx context.Context, id uuid.UUID, user vocab.ID) (n int, err error) {
	err = t.row(ctx, "count unread", `SELECT `+unreadOf+` FROM conversations c WHERE id = $2`, []any{user, id}, &n)
	return n, err
}

// MarkEntriesRead notes that the user has read the entries beside the log up to a number. The mark
// never falls, and never rises above the last.
func (t *Tx) MarkEntriesRead(ctx context.Context, id uuid.UUID, entry int64) error {
	_, err := t.execBeside(ctx, "mark entries read", `UPDATE conversations SET read_entry = greatest(read_entry, least($2, entries)) WHERE id = $1`, id, entry)
	return err
}
