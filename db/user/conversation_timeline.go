package user

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// TimelineEntry is an entry that a conversation shows: a Note, a message of its log, or a
// change of the conversation such as its end.
type TimelineEntry struct {
	// Seq is the entry's number in the log, or the number of the last message before the entry.
	Seq      int64
	N        int64  // orders the entries that are not in the log; 0 for a message of the log
	Kind     string // a kind of entry or of message
	Own      bool
	Sender   vocab.ID // Sender, Epoch and Content are set only for messages of the log
	Epoch    int64    // in which the message was made
	Content  []byte
	At       time.Time
	Object   vocab.ID
	Raw      json.RawMessage // the Note's document; nil if it was deleted
	Readable json.RawMessage
}

// TimelinePlace is a position in a timeline, at which a page ends.
type TimelinePlace struct{ Seq, N int64 }

// TimelineEnd is the place after the newest entry.
var TimelineEnd = TimelinePlace{math.MaxInt64, math.MaxInt64}

func (e TimelineEntry) bytes() int { return len(e.Content) + len(e.Raw) + len(e.Readable) }

// maxTimeline limits the bytes of a page of a timeline. A page ends with the entry that exceeds
// the limit, but has at least two entries if there are two.
const maxTimeline = 4 << 20

// ListTimeline returns up to n entries of a conversation before a place, the newest first. It
// stops after the entry with which the page exceeds maxTimeline. The result "more" reports
// whether there may be older entries. Notes and messages of the log are in one order. A Note
// comes after the message that was the last of the log when the Note arrived.
func (t Conversations) ListTimeline(ctx context.Context, id uuid.UUID, user vocab.ID, before TimelinePlace, n int) (out []TimelineEntry, more bool, err error) {
	err = t.query(ctx, "read timeline", upTo(maxTimeline, TimelineEntry.bytes, &out), `SELECT * FROM (
		(SELECT e.seq, e.n, e.kind, e.own, '' AS sender, 0::bigint AS epoch, NULL::bytea AS content, e.at, coalesce(e.object_uri, '') AS object, o.raw, o.readable
			FROM conversation_entries e LEFT JOIN objects o ON o.uri = e.object_uri AND o.deleted_at IS NULL
			WHERE e.conversation_id = @id AND (e.seq, e.n) < (@seq, @place) ORDER BY e.seq DESC, e.n DESC LIMIT @n)
		UNION ALL
		(SELECT seq, 0, kind, sender_uri = @user, sender_uri, epoch, content, created_at, '', NULL, NULL FROM mls_log
			WHERE conversation_id = @id AND (seq, 0) < (@seq, @place) ORDER BY seq DESC LIMIT @n)
		UNION ALL
		(SELECT i.seq, 0, i.kind, i.sender_uri = @user, i.sender_uri, i.epoch, i.content, i.received_at, '', NULL, NULL FROM mls_inbox i JOIN mls_joined j ON j.id = i.conversation_id
			WHERE i.conversation_id = @id AND i.seq <= j.whole_seq AND i.kind <> 'welcome' AND (i.seq, 0) < (@seq, @place) ORDER BY i.seq DESC LIMIT @n)) AS all_kinds
		ORDER BY seq DESC, n DESC LIMIT @n`, named{"id": id, "seq": before.Seq, "place": before.N, "n": n + 1, "user": user})
	size := 0
	for _, e := range out {
		size += e.bytes()
	}
	return out[:min(n, len(out))], len(out) > n || size > maxTimeline, err
}

// ListedConversation is a conversation with the number of its Notes and application messages
// that others wrote and the user has not read.
type ListedConversation struct {
	Conversation
	Unread int
}

// unreadOf counts the Notes and application messages of a conversation c that others wrote and
// the user has not read. Deleted Notes, commits and proposals do not count. In a conversation
// that the user does not host, messages of a blocked sender do not count either. The argument
// @user is the user.
const unreadOf = `(SELECT count(*) FROM conversation_entries e JOIN objects o ON o.uri = e.object_uri AND o.deleted_at IS NULL
		WHERE e.conversation_id = c.id AND e.n > c.read_entry AND e.kind = 'note' AND NOT e.own)
	+ (SELECT count(*) FROM mls_log l JOIN conversation_members m ON m.conversation_id = c.id AND m.actor_uri = @user
		WHERE l.conversation_id = c.id AND l.seq > greatest(c.last_read_seq, m.joined_seq) AND l.kind = 'application' AND l.sender_uri <> @user)
	+ (SELECT count(*) FROM mls_inbox i WHERE i.conversation_id = c.id AND i.seq > c.last_read_seq AND i.kind = 'application' AND i.sender_uri <> @user AND NOT i.blocked)`

// List returns up to n conversations after a place, the newest first.
func (t Conversations) List(ctx context.Context, user vocab.ID, after *Place, n int) ([]ListedConversation, error) {
	p := after.orFirst()
	return collect[ListedConversation](ctx, t.tx, "list conversations", `SELECT `+conversationColumns+`, `+unreadOf+` AS unread FROM conversations c
		WHERE (created_at, id) < (@at, @id) ORDER BY created_at DESC, id DESC LIMIT @n`, named{"user": user, "at": p.At, "id": uuid.UUID(p.ID), "n": n})
}

// CountUnread returns how many Notes and application messages of a conversation others wrote and
// the user has not read.
func (t Conversations) CountUnread(ctx context.Context, id uuid.UUID, user vocab.ID) (n int, err error) {
	err = t.row(ctx, "count unread", `SELECT `+unreadOf+` FROM conversations c WHERE id = @id`, []any{named{"user": user, "id": id}}, &n)
	return n, err
}
