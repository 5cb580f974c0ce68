package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Kinds of messages that only an inbox has.
const (
	KindWelcome = "welcome"
	// KindOpaque is for a message whose header tells no known kind, and for application data that
	// is not encrypted.
	KindOpaque = "opaque"
)

// InboxEntry is an MLS message that the user received. It can also be a message that the user
// sent in a conversation without a host. There this server assigns Seq, in the order of arrival.
type InboxEntry struct {
	Arrival      int64      // its place in the order of arrival; Messages.Add assigns it
	Conversation *uuid.UUID // nil: the group belongs to no known conversation
	Group        string     // the MLS group that the message names; empty when it names none
	Seq          *int64     // its number in the host's log; nil: not ordered yet
	Generation   int32
	Epoch        int64 // the epoch in which the message was made
	Kind         string
	Sender       vocab.ID
	Object       vocab.ID
	Content      []byte
	Hash         []byte // SHA-256 of the content
	Receipt      []byte // a verified signature of the host; nil: there is none
	Blocked      bool   // its sender or host was blocked when it arrived or was put in order
	Activity     string // the activity as it arrived, without the content; empty: the message was read from the host's log
	ContentAt    int32  // where Activity had the content; -1: the content was not cut out of it
	At           time.Time
}

const inboxColumns = `arrival, conversation_id AS conversation, group_id AS group, seq, generation, epoch, kind, sender_uri AS sender, object_uri AS object,
	content, content_hash AS hash, receipt, blocked, activity, content_at, received_at AS at`

const messagesLock = "mls inbox"

// Lock makes other transactions that add messages to the inbox wait until this one ends. So
// readers see the messages in the order of arrival.
func (t Messages) Lock(ctx context.Context) error { return t.lock(ctx, messagesLock) }

// Add stores a message, and reports whether it is new. Lock must be called first.
func (t Messages) Add(ctx context.Context, e InboxEntry) (bool, error) {
	n, err := t.execBeside(ctx, "keep message", `INSERT INTO mls_inbox (conversation_id, group_id, seq, generation, epoch, kind, sender_uri, object_uri, content, content_hash, receipt, blocked, activity, content_at, received_at)
		VALUES (@conversation, @group, @seq, @generation, @epoch, @kind, @sender, @object, @content, @hash, @receipt, @blocked, @activity, @content_at, @at) ON CONFLICT DO NOTHING`,
		named{"conversation": e.Conversation, "group": e.Group, "seq": e.Seq, "generation": e.Generation, "epoch": e.Epoch, "kind": e.Kind, "sender": e.Sender,
			"object": e.Object, "content": e.Content, "hash": e.Hash, "receipt": e.Receipt, "blocked": e.Blocked, "activity": e.Activity, "content_at": e.ContentAt, "at": e.At})
	return n == 1, err
}

// FindLike returns the messages of e's conversation that have the same content as e or the same
// Seq. If e is a commit, it also returns the other commits of the same generation and epoch. Behind
// them it returns the messages without a conversation that have the content and the group of e, the
// one of e's sender last. They may have arrived before the Welcome to e's conversation. Messages of
// the kind opaque are not compared by their content.
func (t Messages) FindLike(ctx context.Context, e InboxEntry) ([]InboxEntry, error) {
	return collect[InboxEntry](ctx, t.tx, "look for messages like it", `SELECT `+inboxColumns+` FROM mls_inbox
		WHERE conversation_id = @conversation AND (content_hash = @hash AND kind <> 'opaque' OR seq = @seq OR kind = 'commit' AND @kind = 'commit' AND generation = @generation AND epoch = @epoch)
			OR conversation_id IS NULL AND group_id = @group AND content_hash = @hash AND kind <> 'opaque' ORDER BY conversation_id IS NULL, sender_uri = @sender, arrival`,
		named{"conversation": e.Conversation, "hash": e.Hash, "seq": e.Seq, "generation": e.Generation, "epoch": e.Epoch, "kind": e.Kind, "group": e.Group, "sender": e.Sender})
}

// DropCopies removes messages without a conversation, whose content is in a conversation.
func (t Messages) DropCopies(ctx context.Context, copies []InboxEntry) error {
	if len(copies) == 0 {
		return nil
	}
	var arrivals []int64
	for _, c := range copies {
		arrivals = append(arrivals, c.Arrival)
	}
	_, err := t.execBeside(ctx, "drop copies of message", `DELETE FROM mls_inbox WHERE arrival = ANY($1) AND conversation_id IS NULL`, arrivals)
	return err
}

// Place completes a message that arrived before the host had ordered it. It adds e.Conversation,
// and e.Seq, e.Generation, e.Sender and e.Receipt, which come from the host. It also marks the
// message if the user has blocked the sender or the host since. If the message came in another
// actor's name, nothing of that actor's activity stays, nor its mark. The user's devices can read
// some messages only from now on: a commit, a proposal, and a message whose conversation was
// unknown. So Place assigns a new Arrival to these.
func (t Messages) Place(ctx context.Context, early, e InboxEntry) error {
	comes := ""
	if early.Seq == nil && (e.Kind != KindApplication || early.Conversation == nil) {
		comes = "arrival = DEFAULT, "
	}
	_, err := t.execBeside(ctx, "put message in order", `UPDATE mls_inbox SET `+comes+`seq = @seq, generation = @generation, sender_uri = @sender, receipt = @receipt, conversation_id = @conversation,
			blocked = @blocked OR blocked AND sender_uri = @sender, object_uri = CASE sender_uri WHEN @sender THEN object_uri ELSE @object END,
			activity = CASE sender_uri WHEN @sender THEN activity ELSE @activity END, content_at = CASE sender_uri WHEN @sender THEN content_at ELSE @content_at END
		WHERE arrival = @arrival AND (seq IS NULL OR seq = @seq)`,
		named{"arrival": early.Arrival, "seq": e.Seq, "generation": e.Generation, "sender": e.Sender, "receipt": e.Receipt, "conversation": e.Conversation,
			"blocked": e.Blocked, "object": e.Object, "activity": e.Activity, "content_at": e.ContentAt})
	return err
}

// Readdress replaces the activity of a message that the user has sent.
func (t Messages) Readdress(ctx context.Context, arrival int64, activity string, contentAt int32) error {
	_, err := t.execBeside(ctx, "readdress message", `UPDATE mls_inbox SET activity = $2, content_at = $3 WHERE arrival = $1`, arrival, activity, contentAt)
	return err
}

// FindHash returns the hash and the receipt of the message with this number in a conversation.
// Both are nil if the message is not stored.
func (t Messages) FindHash(ctx context.Context, id uuid.UUID, seq int64) (hash, receipt []byte, err error) {
	err = t.row(ctx, "read hash", `SELECT (SELECT content_hash FROM mls_inbox WHERE conversation_id = $1 AND seq = $2), (SELECT receipt FROM mls_inbox WHERE conversation_id = $1 AND seq = $2)`,
		[]any{id, seq}, &hash, &receipt)
	return hash, receipt, err
}

// ListLog returns up to n messages of a conversation, the oldest first. It returns only messages
// whose Seq is greater than after and at most upto. It stops as soon as the messages have more
// bytes than the parameter bytes, but it returns at least two messages if there are two.
func (t Messages) ListLog(ctx context.Context, id uuid.UUID, after, upto int64, n, bytes int) (out []InboxEntry, err error) {
	err = t.query(ctx, "read messages of conversation", upTo(bytes, sizeOfEntry, &out), `SELECT `+inboxColumns+` FROM mls_inbox
		WHERE conversation_id = @id AND seq > @after AND seq <= @upto AND kind <> 'welcome' ORDER BY seq LIMIT @n`, named{"id": id, "after": after, "upto": upto, "n": n})
	return out, err
}

func sizeOfEntry(e InboxEntry) int { return len(e.Content) + len(e.Activity) }

// notHeld selects the messages that the user's devices may read. It leaves out commits and
// proposals that the host has not ordered, since the host may accept others instead.
const notHeld = `(seq IS NOT NULL OR conversation_id IS NULL OR kind NOT IN ('commit', 'proposal'))`

// List returns up to n messages that the user's devices may read, in the order of arrival. It
// returns only messages whose Arrival is greater than after. It stops after the message with
// which the messages exceed a number of bytes, but returns at least two messages if there are
// two.
func (t Messages) List(ctx context.Context, after int64, n, bytes int) (out []InboxEntry, err error) {
	err = t.query(ctx, "read messages", upTo(bytes, sizeOfEntry, &out), `SELECT `+inboxColumns+` FROM mls_inbox WHERE arrival > $1 AND `+notHeld+` ORDER BY arrival LIMIT $2`, after, n)
	return out, err
}

// ListNewest returns up to n messages that the user's devices may read, the last arrived first.
// If before is not zero, it returns only messages whose Arrival is lower than before. It stops
// after the message with which the messages exceed a number of bytes, but returns at least two
// messages if there are two.
func (t Messages) ListNewest(ctx context.Context, before int64, n, bytes int) (out []InboxEntry, err error) {
	err = t.query(ctx, "read newest messages", upTo(bytes, sizeOfEntry, &out), `SELECT `+inboxColumns+` FROM mls_inbox WHERE ($1 = 0 OR arrival < $1) AND `+notHeld+` ORDER BY arrival DESC LIMIT $2`, before, n)
	return out, err
}

// Count returns how many messages the user's devices may read.
func (t Messages) Count(ctx context.Context) (n int64, err error) {
	err = t.row(ctx, "count messages", `SELECT count(*) FROM mls_inbox WHERE `+notHeld, nil, &n)
	return n, err
}

// Waiting counts messages, Welcomes or invitations from an actor that wait for the user.
type Waiting struct {
	Actor vocab.ID
	N     int
}

// CountUnplaced returns how many messages and Welcomes of each sender belong to no known
// conversation yet. A Welcome for a key package of the user is in both tables, and keeps no
// conversation in the inbox, so it is counted among the Welcomes.
func (t Messages) CountUnplaced(ctx context.Context) ([]Waiting, error) {
	return collect[Waiting](ctx, t.tx, "count messages of unknown groups", `SELECT sender_uri AS actor, count(*) AS n FROM
		(SELECT sender_uri FROM mls_inbox i WHERE conversation_id IS NULL
				AND NOT (kind = 'welcome' AND EXISTS (SELECT FROM mls_welcomes w WHERE w.sender_uri = i.sender_uri AND sha256(w.content) = i.content_hash))
			UNION ALL SELECT sender_uri FROM mls_welcomes WHERE conversation_id IS NULL) AS w GROUP BY sender_uri`)
}

// CountOutside returns how many messages of a conversation came from each sender that has never
// been a member of it.
func (t Messages) CountOutside(ctx context.Context, id uuid.UUID) ([]Waiting, error) {
	return collect[Waiting](ctx, t.tx, "count messages of outsiders", `SELECT sender_uri AS actor, count(*) AS n FROM mls_inbox WHERE conversation_id = $1
		AND sender_uri NOT IN (SELECT actor_uri FROM conversation_members WHERE conversation_id = $1) GROUP BY sender_uri`, id)
}

// ListSenders returns those of the actors that have sent a message of a conversation, or a Welcome
// to it, which is still stored.
func (t Messages) ListSenders(ctx context.Context, id uuid.UUID, actors []vocab.ID) (senders []vocab.ID, err error) {
	err = t.query(ctx, "look for senders", column(&senders), `SELECT sender_uri FROM mls_inbox WHERE conversation_id = $1 AND sender_uri = ANY($2::text[])
		UNION SELECT sender_uri FROM mls_welcomes WHERE conversation_id = $1 AND sender_uri = ANY($2::text[]) ORDER BY 1`, id, texts(actors))
	return senders, err
}

// PlaceGroup moves the messages of an MLS group into its conversation, which was unknown when
// they arrived. It numbers them in the order of arrival, from last+1 on, and returns how many
// there were. Of a message that several actors have sent, it moves the one of a member, or else of
// a named actor, or else the first. Named are those in the parameter others, and those that the
// messages of members name. It removes the others, but only if a device of the user has joined: an
// invitation must not take a message from its author. Messages of the kind opaque stay where they
// are.
func (t Joined) PlaceGroup(ctx context.Context, id uuid.UUID, group string, others []vocab.ID, last int64) (n int64, err error) {
	return t.execBeside(ctx, "place messages", `WITH found AS MATERIALIZED (SELECT i.arrival, i.content_hash, i.sender_uri, i.activity, m.actor_uri IS NOT NULL AS is_member
			FROM mls_inbox i LEFT JOIN conversation_members m ON m.conversation_id = @id AND m.actor_uri = i.sender_uri
			WHERE i.conversation_id IS NULL AND i.group_id = @group AND i.kind <> 'opaque'),
		said AS MATERIALIZED (SELECT coalesce(string_agg(left(activity, 65536), ' '), '') AS words FROM found WHERE is_member),
		ranked AS (SELECT arrival, row_number() OVER (PARTITION BY content_hash
				ORDER BY is_member DESC, sender_uri = ANY(@others::text[]) OR strpos(words, to_json(sender_uri)::text) > 0 DESC, arrival) AS place FROM found, said),
		copies AS (DELETE FROM mls_inbox i USING ranked r, conversations c WHERE c.id = @id AND c.confirmed AND i.arrival = r.arrival AND r.place > 1)
		UPDATE mls_inbox i SET conversation_id = @id, seq = @last + p.n FROM (SELECT arrival, row_number() OVER (ORDER BY arrival) AS n FROM ranked WHERE place = 1) AS p
		WHERE i.arrival = p.arrival`, named{"id": id, "group": group, "others": texts(others), "last": last})
}

// JoinedConversation is the user's copy of a conversation that another actor hosts, or that has
// no host.
type JoinedConversation struct {
	ID           uuid.UUID
	URI          vocab.ID
	Host         vocab.ID // empty: it has no host
	GroupID      string
	Generation   int32
	Epoch        int64
	LastSeq      int64 // the highest number that this server has learned of
	WholeSeq     int64 // the number up to which no message is missing
	RosterSeq    int64 // the number of the last message in which the host announced the members
	Status       string
	ResetGroupID string // the next MLS group; empty unless a reset is pending
	FormerGroups []string
	Confirmed    bool // a device of the user has joined
	ReadSeq      int64
	Mixed        bool // its host says that the MLS group has members that support only the SWICG draft
}

// StatusFrozen is the status of a conversation whose host was proved to have told its members
// different things.
const StatusFrozen = "frozen"

const joinedQuery = `SELECT j.id, c.uri, c.host_uri AS host, c.group_id, j.generation, j.epoch, j.last_seq, j.whole_seq, j.roster_seq, j.status, coalesce(j.reset_group_id, '') AS reset_group_id,
		j.former_groups, c.confirmed, c.last_read_seq AS read_seq, j.mixed
	FROM mls_joined j JOIN conversations c USING (id) WHERE `

// Find returns a conversation that the user has joined, nil when there is none.
func (t Joined) Find(ctx context.Context, id uuid.UUID) (*JoinedConversation, error) {
	return one[JoinedConversation](ctx, t.tx, "read joined conversation", joinedQuery+`j.id = $1`, id)
}

// FindAt does what Find does, but by the conversation's URI.
func (t Joined) FindAt(ctx context.Context, uri vocab.ID) (*JoinedConversation, error) {
	return one[JoinedConversation](ctx, t.tx, "read joined conversation", joinedQuery+`c.uri = $1`, uri)
}

// FindGroup does what Find does, but by an MLS group that is or was the group of the
// conversation. If several conversations match, FindGroup prefers one that is confirmed, that is,
// that a device of the user has joined. Among these it prefers one without a host, and after that
// one whose current group is the given one.
func (t Joined) FindGroup(ctx context.Context, group string) (*JoinedConversation, error) {
	return one[JoinedConversation](ctx, t.tx, "read joined conversation", joinedQuery+`c.group_id = $1 OR $1 = ANY(j.former_groups) ORDER BY c.confirmed DESC, (c.host_uri = '') DESC, (c.group_id = $1) DESC, c.id LIMIT 1`, group)
}

// IsGroupTaken reports whether an MLS group belongs or belonged to any of the user's confirmed
// conversations, or is the next group of a hosted one.
func (t Joined) IsGroupTaken(ctx context.Context, group string) (is bool, err error) {
	err = t.row(ctx, "look for group", `SELECT EXISTS (SELECT FROM conversations WHERE group_id = $1 AND confirmed) OR EXISTS (SELECT FROM mls_joined j JOIN conversations c USING (id) WHERE $1 = ANY(j.former_groups) AND c.confirmed)
		OR EXISTS (SELECT FROM mls_conversations WHERE $1 = ANY(former_groups) OR reset_group_id = $1)`, []any{group}, &is)
	return is, err
}

// Add stores a conversation that the user joins. The row in conversations may exist already, if
// it is a conversation of two.
func (t Joined) Add(ctx context.Context, j JoinedConversation, now time.Time) error {
	_, err := t.execBeside(ctx, "add conversation", `INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at, confirmed)
		VALUES (@id, @uri, 'encrypted', @host, @group, @now, @confirmed) ON CONFLICT (id) DO UPDATE SET confirmed = excluded.confirmed`,
		named{"id": j.ID, "uri": j.URI, "host": j.Host, "group": j.GroupID, "now": now, "confirmed": j.Confirmed})
	if err != nil {
		return err
	}
	_, err = t.execBeside(ctx, "join conversation", `INSERT INTO mls_joined (id, generation, epoch, last_seq, whole_seq, roster_seq, status, former_groups, updated_at)
		VALUES (@id, @generation, @epoch, @last, @whole, @roster, @status, '{}', @now)`,
		named{"id": j.ID, "generation": j.Generation, "epoch": j.Epoch, "last": j.LastSeq, "whole": j.WholeSeq, "roster": j.RosterSeq, "status": j.Status, "now": now})
	return err
}

// Save stores the state of a joined conversation. A closed conversation stays closed. Save returns
// the number up to which no message is missing now. Like a transaction that closes the
// conversation, Save locks the row in conversations before the row in mls_joined.
func (t Joined) Save(ctx context.Context, j JoinedConversation, now time.Time) (whole int64, err error) {
	err = t.row(ctx, "save joined conversation", `WITH first AS (SELECT id FROM conversations WHERE id = @id FOR NO KEY UPDATE),
		known AS (UPDATE conversations SET group_id = @group WHERE id = @id AND group_id <> @group)
		UPDATE mls_joined j SET generation = @generation, epoch = @epoch, last_seq = @last, roster_seq = @roster, former_groups = @former, updated_at = @now, mixed = @mixed,
			status = CASE status WHEN 'closed' THEN status ELSE @status END, reset_group_id = CASE WHEN status <> 'closed' THEN nullif(@reset, '') END,
			whole_seq = (SELECT coalesce(max(seq), @whole) FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS n FROM mls_inbox WHERE conversation_id = @id AND seq > @whole) AS later WHERE seq = @whole + n)
		FROM first WHERE j.id = first.id RETURNING whole_seq`,
		[]any{named{"id": j.ID, "group": j.GroupID, "generation": j.Generation, "epoch": j.Epoch, "last": j.LastSeq, "whole": j.WholeSeq, "roster": j.RosterSeq,
			"status": j.Status, "reset": j.ResetGroupID, "former": j.FormerGroups, "now": now, "mixed": j.Mixed}}, &whole)
	return whole, err
}

// NoteBehind makes the Commit tell subscribers that the host of a conversation may have messages
// that this database lacks. The parameter isGap says whether a later message is stored here.
func (t Joined) NoteBehind(id uuid.UUID, host vocab.ID, isGap bool) {
	t.behind = append(t.behind, Behind{id, host, isGap})
}

// Behind is a conversation of which this database may lack messages.
type Behind struct {
	Conversation uuid.UUID
	Host         vocab.ID
	IsGap        bool // a later message is stored
}

// Confirm stores that a device of the user has joined a conversation. From then on its messages
// have no copies outside of it, which other actors may have sent before. Messages.Lock must be
// called first. IsTakenGroup recognizes the error that Confirm returns when another confirmed
// conversation has the MLS group.
//
// The parameter by is the actor whose Welcome let the device in, or the user if the device has sent
// a message. In a conversation without a host, this actor is the only one that is known to be in
// the group. So a message that several actors have sent becomes that of this actor, or else of an
// actor that its last messages name, or else of the first sender that the user does not block.
func (t Joined) Confirm(ctx context.Context, id uuid.UUID, by vocab.ID) error {
	_, err := t.execBeside(ctx, "confirm conversation", `WITH confirmed AS (UPDATE conversations SET confirmed = true WHERE id = @id AND NOT confirmed RETURNING id, group_id, host_uri),
		placed AS MATERIALIZED (SELECT k.arrival, k.content_hash, c.host_uri = '' AS is_hostless FROM mls_inbox k JOIN confirmed c ON k.conversation_id = c.id
			WHERE k.kind <> 'opaque' AND EXISTS (SELECT FROM mls_inbox i WHERE i.conversation_id IS NULL AND i.group_id = c.group_id AND i.content_hash = k.content_hash AND i.kind <> 'opaque')),
		copies AS (DELETE FROM mls_inbox i USING placed k, confirmed c
			WHERE i.conversation_id IS NULL AND i.group_id = c.group_id AND i.content_hash = k.content_hash AND i.kind <> 'opaque'
			RETURNING i.arrival, i.content_hash, i.sender_uri, i.object_uri, i.activity, i.content_at, i.blocked, i.received_at),
		said AS MATERIALIZED (SELECT coalesce(string_agg(left(activity, 65536), ' '), '') AS words FROM
			(SELECT activity FROM mls_inbox WHERE conversation_id = @id AND sender_uri = @by ORDER BY seq DESC NULLS LAST LIMIT 100) AS last),
		sent AS (SELECT * FROM copies UNION ALL SELECT i.arrival, i.content_hash, i.sender_uri, i.object_uri, i.activity, i.content_at, i.blocked, i.received_at FROM mls_inbox i JOIN placed USING (arrival)),
		author AS (SELECT DISTINCT ON (content_hash) sent.* FROM sent, said
			ORDER BY content_hash, sender_uri = @by DESC, strpos(words, to_json(sender_uri)::text) > 0 DESC, blocked, arrival)
		UPDATE mls_inbox i SET sender_uri = a.sender_uri, object_uri = a.object_uri, activity = a.activity, content_at = a.content_at, blocked = a.blocked, received_at = a.received_at
			FROM placed k JOIN author a USING (content_hash) WHERE i.arrival = k.arrival AND k.is_hostless AND i.sender_uri <> a.sender_uri`, named{"id": id, "by": by})
	return err
}

// CountInvitations counts, by inviting actor, the conversations that no device of the user has
// joined and whose Welcome still waits. The inviting actor is the host, or the sender of the
// Welcome if there is no host.
func (t Joined) CountInvitations(ctx context.Context) ([]Waiting, error) {
	return collect[Waiting](ctx, t.tx, "count invitations", `SELECT coalesce(nullif(c.host_uri, ''), w.sender_uri) AS actor, count(*) AS n FROM mls_joined j JOIN conversations c USING (id)
		CROSS JOIN LATERAL (SELECT sender_uri FROM mls_welcomes WHERE conversation_id = j.id AND state IN ('available', 'in_flight') LIMIT 1) AS w
		WHERE NOT c.confirmed GROUP BY 1`)
}

// SetRoster makes these actors the members of a conversation, as its host announced them in the
// message with the number seq. It returns the actors that were members and are none now. It marks
// all members as Lightweb. The caller must then call Hosted.NoteForeign for the actors whose
// servers support only the SWICG draft.
func (t Joined) SetRoster(ctx context.Context, id uuid.UUID, actors []vocab.ID, roles []string, seq int64) (gone []vocab.ID, err error) {
	err = t.query(ctx, "set roster", column(&gone), `WITH gone AS (UPDATE conversation_members SET left_seq = greatest(@seq, joined_seq + 1), leaving = false
			WHERE conversation_id = @id AND left_seq IS NULL AND actor_uri <> ALL(@actors::text[]) RETURNING actor_uri),
		members AS (INSERT INTO conversation_members AS m (conversation_id, actor_uri, role, joined_seq) SELECT @id, a, r, 0 FROM unnest(@actors::text[], @roles::text[]) AS u(a, r)
			ON CONFLICT (conversation_id, actor_uri) DO UPDATE SET role = excluded.role, left_seq = NULL, leaving = m.leaving AND m.left_seq IS NULL, lightweb = true)
		SELECT actor_uri FROM gone ORDER BY actor_uri`, named{"id": id, "actors": texts(actors), "roles": roles, "seq": seq})
	return gone, err
}

// Has reports whether the user has published this key package and not revoked it. Until the
// transaction ends, no other transaction can revoke the package.
func (t KeyPackages) Has(ctx context.Context, ref []byte) (has bool, err error) {
	err = t.row(ctx, "look for key package", `SELECT EXISTS (SELECT FROM mls_key_packages WHERE ref = $1 AND state <> 'revoked' FOR SHARE)`, []any{ref}, &has)
	return has, err
}
