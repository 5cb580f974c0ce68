package user

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Statuses of hosted conversations.
const (
	StatusActive       = "active"
	StatusResetPending = "reset_pending" // the first member that makes the next MLS group ends the reset
	StatusClosed       = "closed"
)

// HostedConversation is a conversation that the user hosts, in its present state.
type HostedConversation struct {
	ID           uuid.UUID
	URI          vocab.ID
	GroupID      string
	Generation   int32 // grows with each MLS group: by one, and further by a restore
	Term         int32 // grows when another database may have assigned epochs
	Epoch        int64
	LastSeq      int64 // the number of the last message in the log
	Status       string
	LastHash     []byte // SHA-256 of the last message of the log; empty when there was none
	GroupInfo    []byte // at this epoch; empty when no member has sent it
	FormerGroups []string
	ResetGroupID string // the next MLS group; empty unless a reset is pending
	Mode         string // federated until an upgrade is complete
	Partner      vocab.ID
	Predecessor  vocab.ID // the URI of the conversation that it continues
	Mixed        bool     // the MLS group has members that support only the SWICG draft
}

const hostedColumns = `m.id, c.uri, c.group_id, m.generation, m.term, m.epoch, m.last_seq, m.status, m.last_hash, coalesce(m.group_info, '') AS group_info, m.former_groups, coalesce(m.reset_group_id, '') AS reset_group_id,
	c.mode, coalesce(c.partner_uri, '') AS partner, coalesce(c.predecessor_uri, '') AS predecessor, m.mixed`

// Add makes the user the host of the conversation c, which begins with c.Epoch and c.GroupInfo.
func (t Hosted) Add(ctx context.Context, c HostedConversation, now time.Time) error {
	_, err := t.execBeside(ctx, "host conversation", `INSERT INTO mls_conversations (id, epoch, status, group_info, updated_at) VALUES (@id, @epoch, 'active', @info, @now)`,
		named{"id": c.ID, "epoch": c.Epoch, "info": c.GroupInfo, "now": now})
	return err
}

// Find returns a conversation that the user hosts, nil when there is none.
func (t Hosted) Find(ctx context.Context, id uuid.UUID) (*HostedConversation, error) {
	return one[HostedConversation](ctx, t.tx, "read hosted conversation", `SELECT `+hostedColumns+` FROM mls_conversations m JOIN conversations c USING (id) WHERE m.id = $1`, id)
}

// BusyConversation is an encrypted conversation that the user hosts.
type BusyConversation struct {
	ID    uuid.UUID
	Epoch int64
	At    time.Time // when its log or its state last changed
}

// ListBusiest returns up to n encrypted conversations that are not closed and that changed after
// a time, the one that changed last first. No index has their times, since every message would
// have to change it.
func (t Hosted) ListBusiest(ctx context.Context, after time.Time, n int) ([]BusyConversation, error) {
	return collect[BusyConversation](ctx, t.tx, "list busy conversations", `SELECT m.id, m.epoch, m.updated_at AS at FROM mls_conversations m JOIN conversations c USING (id)
		WHERE m.updated_at > $1 AND m.status <> 'closed' AND c.mode = 'encrypted' ORDER BY m.updated_at DESC LIMIT $2`, after, n)
}

// FindGroup returns the id of the hosted conversation whose current MLS group is the parameter
// group, or uuid.Nil if there is no such conversation.
func (t Hosted) FindGroup(ctx context.Context, group string) (id uuid.UUID, err error) {
	err = t.row(ctx, "look for hosted group", `SELECT coalesce((SELECT m.id FROM mls_conversations m JOIN conversations c USING (id) WHERE c.group_id = $1), $2)`, []any{group, uuid.Nil}, &id)
	return id, err
}

// Lock returns what Find returns, and locks the conversation. So other transactions that change
// the conversation wait until this one ends. Lock first takes the lock that HoldAudience takes,
// because a change of the audience may change conversations. Then it locks the row in
// conversations before the row in mls_conversations. Transactions that find a conversation by its
// partner lock the rows in the same order.
func (t Hosted) Lock(ctx context.Context, id uuid.UUID) (c *HostedConversation, err error) {
	b := t.unsent.batch()
	queueLock(b, id, &c)
	err = t.send(ctx, "lock conversation", b)
	return c, err
}

// queueLock locks a conversation in one statement, which first takes the lock of the audience. It
// returns the rows as the last transaction left them, because it locks them all.
func queueLock(b *pgx.Batch, id uuid.UUID, c **HostedConversation) {
	b.Queue(`WITH held AS MATERIALIZED (`+holdAudience+`)
		SELECT `+hostedColumns+` FROM held, conversations c JOIN mls_conversations m USING (id) WHERE c.id = $2 FOR NO KEY UPDATE OF c FOR UPDATE OF m`, audienceLock, id).Query(firstInto(c))
}

// LockFor does what Lock does, for a request of an actor with an idempotency key. In the same
// round trip it reads the results of ListAddressees, and of Answers.Find for this key. If the
// actor is a member, it also reads the results of Conversations.FindMember and Blocks.FindAmong
// for the actor. These four methods return these results until the transaction sends its next
// statement.
func (t Hosted) LockFor(ctx context.Context, id uuid.UUID, actor vocab.ID, key string, now time.Time) (c *HostedConversation, err error) {
	r := &asked{conversation: id, key: key}
	b := t.unsent.batch()
	queueLock(b, id, &c)
	b.Queue(findAnswer, key, now.Add(-keptAnswers)).Query(firstInto(&r.answer))
	b.Queue(listAddressees, id, nil).Query(into(&r.addressees))
	if err := t.send(ctx, "lock conversation", b); err != nil {
		return nil, err
	}
	if c != nil {
		r.lastSeq = c.LastSeq
	}
	if n := slices.IndexFunc(r.addressees, func(a Addressee) bool { return a.Actor == actor }); n >= 0 {
		r.caller = &r.addressees[n]
	}
	t.ahead.asked = r
	return c, nil
}

// LockFree locks the conversations with these ids, except conversations that another transaction
// has locked. It returns the ids of the exceptions. Like Lock, it first takes the lock that
// HoldAudience takes.
func (t Hosted) LockFree(ctx context.Context, ids []uuid.UUID) (held []uuid.UUID, err error) {
	b := t.unsent.batch()
	b.Queue(holdAudience, audienceLock)
	b.Queue(`WITH free AS MATERIALIZED (SELECT id FROM conversations WHERE id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED)
		SELECT id FROM conversations WHERE id = ANY($1) AND id NOT IN (TABLE free)`, ids).Query(column(&held))
	err = t.send(ctx, "lock free conversations", b)
	return held, err
}

// NextEpoch is the epoch that a commit begins.
type NextEpoch struct {
	GroupInfo []byte // nil: no member has sent it
	Mixed     bool   // the MLS group has members that support only the SWICG draft
}

// EndEpoch moves a conversation to its next epoch, and appends to its log the commit that begins
// this epoch. It does so with the next statement of the transaction or with its commit. The
// conversation must be active, and its generation, term and epoch must still be those of c.
// Otherwise the transaction fails, because no row is updated, and the log takes no entry without
// a conversation.
func (t Hosted) EndEpoch(c HostedConversation, commit LogEntry, next NextEpoch) {
	t.unsent.later(`WITH ended AS (
			UPDATE mls_conversations SET epoch = epoch + 1, last_seq = last_seq + 1, group_info = @info, updated_at = @at, last_hash = @hash, mixed = @mixed
			WHERE id = @id AND generation = @generation AND term = @term AND epoch = @epoch AND status = 'active' RETURNING id)
		INSERT INTO mls_log (conversation_id, generation, epoch, created_at, content_hash, seq, kind, sender_uri, content)
		VALUES ((SELECT id FROM ended), @generation, @epoch, @at, @hash, @seq, @kind, @sender, @content)`,
		named{"id": c.ID, "generation": c.Generation, "term": c.Term, "epoch": c.Epoch, "info": next.GroupInfo, "at": commit.At, "hash": commit.Hash,
			"mixed": next.Mixed, "seq": commit.Seq, "kind": KindCommit, "sender": commit.Sender, "content": commit.Content})
}

// CountMessages assigns the next n numbers of a conversation's log to messages. The parameter
// hash is the hash of the last of these messages.
func (t Hosted) CountMessages(id uuid.UUID, n int, hash []byte, now time.Time) {
	t.unsent.later(`UPDATE mls_conversations SET last_seq = last_seq + @n, updated_at = @now, last_hash = @hash WHERE id = @id`,
		named{"id": id, "n": n, "now": now, "hash": hash})
}

// AskReset begins a reset of a conversation if it is active, and reports whether it was. The
// parameter group is the id of the next MLS group.
func (t Hosted) AskReset(ctx context.Context, id uuid.UUID, group string, now time.Time) (bool, error) {
	n, err := t.execBeside(ctx, "ask for a reset", `UPDATE mls_conversations SET status = 'reset_pending', reset_group_id = $2, updated_at = $3
		WHERE id = $1 AND status = 'active'`, id, group, now)
	return n == 1, err
}

// Reset completes the pending reset of a conversation. Its next generation begins at epoch 0 of
// the group that AskReset named.
func (t Hosted) Reset(ctx context.Context, c HostedConversation, groupInfo []byte, now time.Time) error {
	_, err := t.execBeside(ctx, "reset conversation", `WITH hosted AS (UPDATE mls_conversations SET generation = generation + 1, epoch = 0, status = 'active',
			former_groups = former_groups || @former::text, reset_group_id = NULL, group_info = @info, updated_at = @now, mixed = false WHERE id = @id)
		UPDATE conversations SET group_id = @group WHERE id = @id`, named{"id": c.ID, "former": c.GroupID, "info": groupInfo, "now": now, "group": c.ResetGroupID})
	return err
}

// Kinds of messages in the log of a conversation.
const (
	KindCommit      = "commit"
	KindProposal    = "proposal"
	KindApplication = "application"
)

// LogEntry is a message in the log of a conversation.
type LogEntry struct {
	Seq        int64
	Generation int32
	Epoch      int64 // the epoch in which the message was made
	Kind       string
	Sender     vocab.ID
	Content    []byte
	Hash       []byte // SHA-256 of the content
	At         time.Time
}

const logColumns = `seq, generation, epoch, kind, sender_uri AS sender, content, content_hash AS hash, created_at AS at`

// AddEntries appends messages to the log of a conversation, under the numbers that CountMessages
// assigns.
func (t Hosted) AddEntries(id uuid.UUID, entries ...LogEntry) {
	n := len(entries)
	seqs, generations, epochs, kinds, senders := make([]int64, n), make([]int32, n), make([]int64, n), make([]string, n), make([]string, n)
	contents, hashes, times := make([][]byte, n), make([][]byte, n), make([]time.Time, n)
	for i, e := range entries {
		seqs[i], generations[i], epochs[i], kinds[i], senders[i], contents[i], hashes[i], times[i] = e.Seq, e.Generation, e.Epoch, e.Kind, string(e.Sender), e.Content, e.Hash, e.At
	}
	t.unsent.later(`INSERT INTO mls_log (conversation_id, seq, generation, epoch, kind, sender_uri, content, content_hash, created_at)
		SELECT @id, * FROM unnest(@seqs::bigint[], @generations::int[], @epochs::bigint[], @kinds::text[], @senders::text[], @contents::bytea[], @hashes::bytea[], @times::timestamptz[])`,
		named{"id": id, "seqs": seqs, "generations": generations, "epochs": epochs, "kinds": kinds, "senders": senders, "contents": contents, "hashes": hashes, "times": times})
}

// LoggedMessage is a LogEntry without its generation, content and time.
type LoggedMessage struct {
	Seq    int64
	Epoch  int64
	Kind   string
	Sender vocab.ID
	Hash   []byte
}

// FindMessages returns the messages of a conversation whose contents have these hashes.
func (t Hosted) FindMessages(ctx context.Context, id uuid.UUID, hashes [][]byte) ([]LoggedMessage, error) {
	return collect[LoggedMessage](ctx, t.tx, "look for messages", `SELECT seq, epoch, kind, sender_uri AS sender, content_hash AS hash FROM mls_log WHERE conversation_id = $1 AND content_hash = ANY($2)`, id, hashes)
}

// ListLog returns up to n messages of a conversation after a number, the oldest first. It stops
// after the message with which the contents exceed a number of bytes, but returns at least two
// messages if there are two.
func (t Hosted) ListLog(ctx context.Context, id uuid.UUID, after int64, n, bytes int) (out []LogEntry, err error) {
	err = t.query(ctx, "read log", upTo(bytes, func(e LogEntry) int { return len(e.Content) }, &out), `SELECT `+logColumns+` FROM mls_log
		WHERE conversation_id = $1 AND seq > $2 ORDER BY seq LIMIT $3`, id, after, n)
	return out, err
}

// ListCommits returns up to n commits of a generation from an epoch on. It stops after the commit
// with which the contents exceed a number of bytes, but returns at least two commits if there are
// two.
func (t Hosted) ListCommits(ctx context.Context, id uuid.UUID, generation int32, epoch int64, n, bytes int) (out []LogEntry, err error) {
	err = t.query(ctx, "read commits", upTo(bytes, func(e LogEntry) int { return len(e.Content) }, &out), `SELECT `+logColumns+` FROM mls_log
		WHERE conversation_id = @id AND generation = @generation AND epoch >= @epoch AND kind = 'commit' ORDER BY epoch LIMIT @n`,
		named{"id": id, "generation": generation, "epoch": epoch, "n": n})
	return out, err
}
