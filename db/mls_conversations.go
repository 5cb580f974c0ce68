package db

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Statuses of hosted conversations.
const (
	StatusActive       = "active"
	StatusResetPending = "reset_pending" // whoever is first makes its next MLS group
	StatusClosed       = "closed"
)

// HostedConversation is a conversation that is put in order for the user, at its present state.
type HostedConversation struct {
	ID           uuid.UUID
	URI          vocab.ID
	GroupID      string
	Generation   int32 // how many MLS groups it had before
	Term         int32 // begins whenever another database may have handed out epochs
	Epoch        int64
	LastSeq      int64 // of the log
	Status       string
	LastHash     []byte // SHA-256 of the last message of the log; empty when there was none
	GroupInfo    []byte // at this epoch
	FormerGroups []string
	ResetGroupID string // the group that comes next; empty unless a reset is pending
	Mode         string // federated until an upgrade is done
	Partner      vocab.ID
}

const hostedColumns = `m.id, c.uri, c.group_id, m.generation, m.term, m.epoch, m.last_seq, m.status, m.last_hash, coalesce(m.group_info, ''), m.former_groups, coalesce(m.reset_group_id, ''),
	c.mode, coalesce(c.partner_uri, '')`

// HostConversation makes a conversation one that is put in order for the user. It begins as c
// says.
func (t *Tx) HostConversation(ctx context.Context, c HostedConversation, now time.Time) error {
	_, err := t.execBeside(ctx, "host conversation", `INSERT INTO mls_conversations (id, epoch, status, group_info, updated_at) VALUES ($1, $2, 'active', $3, $4)`,
		c.ID, c.Epoch, c.GroupInfo, now)
	return err
}

// HostedConversation returns a conversation that is put in order for the user, nil when there is
// none.
func (t *Tx) HostedConversation(ctx context.Context, id uuid.UUID) (*HostedConversation, error) {
	return one[HostedConversation](ctx, t, "read hosted conversation", `SELECT `+hostedColumns+` FROM mls_conversations m JOIN conversations c USING (id) WHERE m.id = $1`, id)
}

// HostedByGroup returns which conversation is put in order for the user and has an MLS group now,
// uuid.Nil when there is none.
func (t *Tx) HostedByGroup(ctx context.Context, group string) (id uuid.UUID, err error) {
	err = t.row(ctx, "look for hosted group", `SELECT coalesce((SELECT m.id FROM mls_conversations m JOIN conversations c USING (id) WHERE c.group_id = $1), $2)`, []any{group, uuid.Nil}, &id)
	return id, err
}

// LockConversation is HostedConversation that makes other transactions which change the
// conversation wait until this one has ended. It holds the audience before: who changes that may
// change conversations, too.
func (t *Tx) LockConversation(ctx context.Context, id uuid.UUID) (c *HostedConversation, err error) {
	var found []HostedConversation
	b := t.unsent.batch()
	b.Queue(holdAudience, audienceLock)
	b.Queue(`SELECT `+hostedColumns+` FROM mls_conversations m JOIN conversations c USING (id) WHERE m.id = $1 FOR UPDATE OF m`, id).Query(into(&found))
	if err := t.send(ctx, "lock conversation", b); err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// AdvanceEpoch ends an epoch of a conversation, and reports whether that was its epoch: in the
// same generation and term, while it is active. The hash is that of the commit, and the group info
// that of the next epoch.
func (t *Tx) AdvanceEpoch(ctx context.Context, c HostedConversation, hash, groupInfo []byte, now time.Time) (bool, error) {
	n, err := t.execBeside(ctx, "advance epoch", `UPDATE mls_conversations SET epoch = epoch + 1, last_seq = last_seq + 1, group_info = $5, updated_at = $6, last_hash = $7
		WHERE id = $1 AND generation = $2 AND term = $3 AND epoch = $4 AND status = 'active'`, c.ID, c.Generation, c.Term, c.Epoch, groupInfo, now, hash)
	return n == 1, err
}

// CountMessages gives a conversation n more numbers of its log. The hash is that of the last of
// these messages.
func (t *Tx) CountMessages(ctx context.Context, id uuid.UUID, n int, hash []byte, now time.Time) error {
	_, err := t.execBeside(ctx, "number messages", `UPDATE mls_conversations SET last_seq = last_seq + $2, updated_at = $3, last_hash = $4 WHERE id = $1`, id, n, now, hash)
	return err
}

// AskReset begins a reset of a conversation, and reports whether none was pending: the next MLS
// group is the one that the reset names.
func (t *Tx) AskReset(ctx context.Context, id uuid.UUID, group string, now time.Time) (bool, error) {
	n, err := t.execBeside(ctx, "ask for a reset", `UPDATE mls_conversations SET status = 'reset_pending', reset_group_id = $2, updated_at = $3
		WHERE id = $1 AND status = 'active'`, id, group, now)
	return n == 1, err
}

// ResetConversation ends the pending reset of a conversation: its next generation begins at epoch
// 0 of the group that the reset named.
func (t *Tx) ResetConversation(ctx context.Context, c HostedConversation, groupInfo []byte, now time.Time) error {
	_, err := t.execBeside(ctx, "reset conversation", `WITH hosted AS (UPDATE mls_conversations SET generation = generation + 1, epoch = 0, status = 'active',
			former_groups = former_groups || $2::text, reset_group_id = NULL, group_info = $3, updated_at = $4 WHERE id = $1)
		UPDATE conversations SET group_id = $5 WHERE id = $1`, c.ID, c.GroupID, groupInfo, now, c.ResetGroupID)
	return err
}

// Kinds of messages in the log of a conversation.
const (
	KindCommit      = "commit"
	KindProposal    = "proposal"
	KindApplication = "application"
)

// LogEntry is a message that a conversation accepted.
type LogEntry struct {
	Seq        int64
	Generation int32
	Epoch      int64 // in which it was made
	Kind       string
	Sender     vocab.ID
	Content    []byte
	Hash       []byte // SHA-256 of the content
	At         time.Time
}

const logColumns = `seq, generation, epoch, kind, sender_uri, content, content_hash, created_at`

// AddLogEntries appends messages to the log of a conversation, under their numbers. AdvanceEpoch
// and CountMessages move the last number.
func (t *Tx) AddLogEntries(ctx context.Context, id uuid.UUID, entries ...LogEntry) error {
	n := len(entries)
	seqs, generations, epochs, kinds, senders := make([]int64, n), make([]int32, n), make([]int64, n), make([]string, n), make([]string, n)
	contents, hashes, times := make([][]byte, n), make([][]byte, n), make([]time.Time, n)
	for i, e := range entries {
		seqs[i], generations[i], epochs[i], kinds[i], senders[i], contents[i], hashes[i], times[i] = e.Seq, e.Generation, e.Epoch, e.Kind, string(e.Sender), e.Content, e.Hash, e.At
	}
	_, err := t.execBeside(ctx, "append to log", `INSERT INTO mls_log (conversation_id, seq, generation, epoch, kind, sender_uri, content, content_hash, created_at)
		SELECT $1, * FROM unnest($2::bigint[], $3::int[], $4::bigint[], $5::text[], $6::text[], $7::bytea[], $8::bytea[], $9::timestamptz[])`,
		id, seqs, generations, epochs, kinds, senders, contents, hashes, times)
	return err
}

// LoggedMessage is where a message stands in the log.
type LoggedMessage struct {
	Seq    int64
	Epoch  int64
	Kind   string
	Sender vocab.ID
	Hash   []byte
}

// LoggedMessages returns the messages of a conversation with these contents.
func (t *Tx) LoggedMessages(ctx context.Context, id uuid.UUID, hashes [][]byte) ([]LoggedMessage, error) {
	return collect[LoggedMessage](ctx, t, "look for messages", `SELECT seq, epoch, kind, sender_uri, content_hash FROM mls_log WHERE conversation_id = $1 AND content_hash = ANY($2)`, id, hashes)
}

// Log returns up to n messages of a conversation after a number, the oldest first, and no more
// than about so many bytes of them.
func (t *Tx) Log(ctx context.Context, id uuid.UUID, after int64, n, bytes int) (out []LogEntry, err error) {
	err = t.query(ctx, "read log", upTo(bytes, func(e LogEntry) int { return len(e.Content) }, &out), `SELECT `+logColumns+` FROM mls_log
		WHERE conversation_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`, id, after, n)
	return out, err
}

// CommitsFrom returns the commits of a generation from an epoch on, as Log does.
func (t *Tx) CommitsFrom(ctx context.Context, id uuid.UUID, generation int32, epoch int64, n, bytes int) (out []LogEntry, err error) {
	err = t.query(ctx, "read commits", upTo(bytes, func(e LogEntry) int { return len(e.Content) }, &out), `SELECT `+logColumns+` FROM mls_log
		WHERE conversation_id = $1 AND generation = $2 AND epoch >= $3 AND kind = 'commit' ORDER BY epoch LIMIT $4`, id, generation, epoch, n)
	return out, err
}
