package user

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/vocab"
)

// ending says who ends a conversation, and when. The field own is true when the user ends it. The
// function in the field tells, which may be nil, reports whether an event may be added. Its
// parameter is the user's trust in the actor that ends the conversation.
type ending struct {
	by    vocab.ID
	own   bool
	at    time.Time
	tells func(trust string) bool
}

// ended is a conversation that has ended, or that another one continues.
type ended struct {
	URI   vocab.ID
	Known bool // see knows
}

// knows holds if the actor that ends or continues a conversation is no stranger: the user hosts the
// conversation, a device of the user is in it, the user follows the actor, or they are friends. The
// parameters are the alias of a row of conversations, and an SQL expression.
func knows(c, actor string) string {
	return `(EXISTS (SELECT FROM mls_conversations h WHERE h.id = ` + c + `.id) OR ` + c + `.confirmed AND EXISTS (SELECT FROM mls_joined j WHERE j.id = ` + c + `.id)
		OR EXISTS (SELECT FROM relationships r WHERE r.actor_uri = ` + actor + ` AND r.type <> '` + Follower + `' AND r.status = '` + Accepted + `'))`
}

// closeWhere closes, for good, the open encrypted conversations that match a condition. The
// condition is SQL about a row c of conversations, with the argument @whose. A closed
// conversation can still be read, but nothing can be written to it. closeWhere returns the URIs of
// the closed conversations, and adds an event for each. If another conversation already names a
// closed one as its predecessor, that other conversation becomes the successor of the closed one.
func (t Conversations) closeWhere(ctx context.Context, e ending, of string, whose any) (closed []vocab.ID, err error) {
	changed, err := collect[ended](ctx, t.tx, "close conversations", `WITH changed AS (`+addEntry+`, closed_at = @at WHERE c.closed_at IS NULL AND c.mode = 'encrypted' AND `+of+` RETURNING id, entries, uri, confirmed),
		hosted AS (UPDATE mls_conversations SET status = 'closed', reset_group_id = NULL, updated_at = @at WHERE id IN (SELECT id FROM changed)),
		joined AS (UPDATE mls_joined SET status = 'closed', reset_group_id = NULL, updated_at = @at WHERE id IN (SELECT id FROM changed)),
		told AS (INSERT INTO conversation_entries (conversation_id, n, seq, kind, own, at) SELECT id, entries, `+lastSeqOf("changed.id")+`, 'closed', @own, @at FROM changed)
		SELECT uri, `+knows("changed", "@by")+` AS known FROM changed ORDER BY uri`, named{"at": e.at, "own": e.own, "whose": whose, "by": e.by})
	for _, c := range changed {
		closed = append(closed, c.URI)
		if err == nil {
			err = t.tellEnd(ctx, "conversation.closed", c, e)
		}
	}
	if err != nil || len(closed) == 0 {
		return closed, err
	}
	return closed, t.nameSuccessors(ctx, closed, e)
}

// tellEnd adds an event about the end of a conversation or its successor, unless e.tells does not
// permit it.
func (t Conversations) tellEnd(ctx context.Context, kind string, c ended, e ending) error {
	trust := TrustStranger
	switch {
	case e.own:
		trust = TrustSelf
	case c.Known:
		trust = TrustContact
	}
	if e.tells != nil && !e.tells(trust) {
		return nil
	}
	d := vocab.Doc{"conversation": string(c.URI), "actorUri": string(e.by)}
	return t.all.Events.Add(ctx, NewEvent(kind, SourceLocal, trust, d, e.at))
}

// nameSuccessors gives a successor to each closed conversation that has none, and adds an event
// for it. The successor is the first conversation that names the closed one as its predecessor.
func (t Conversations) nameSuccessors(ctx context.Context, closed []vocab.ID, e ending) error {
	type row struct {
		ended
		ID         uuid.UUID
		Next, Host vocab.ID
	}
	next, err := collect[row](ctx, t.tx, "look for successors", `SELECT DISTINCT ON (c.id) c.id, c.uri, `+knows("c", "n.host_uri")+` AS known, n.uri AS next, n.host_uri AS host
		FROM conversations c JOIN conversations n ON n.predecessor_uri = c.uri
		WHERE c.uri = ANY($1::text[]) AND c.successor_uri IS NULL ORDER BY c.id, n.created_at, n.id`, texts(closed))
	for _, n := range next {
		if err != nil {
			return err
		}
		if _, err = t.Continue(ctx, n.ID, n.Next, false, e.at); err == nil {
			err = t.tellEnd(ctx, "conversation.continued", n.ended, ending{n.Host, false, e.at, e.tells})
		}
	}
	return err
}

// Close closes the encrypted conversation of two between the user and the partner. The parameter
// by is the actor that ends it. If another transaction is making the conversation encrypted,
// Close waits for it.
func (t Pairs) Close(ctx context.Context, partner, by vocab.ID, now time.Time) ([]vocab.ID, error) {
	if _, err := t.Find(ctx, partner); err != nil {
		return nil, err
	}
	return t.all.Conversations.closeWhere(ctx, ending{by, by != partner, now, nil}, `c.partner_uri = @whose`, partner)
}

// CloseHostedBy closes the encrypted conversations of a host that is gone. It also closes the
// user's encrypted conversation of two with the host. The function tells, which may be nil, reports
// whether an event may be added. CloseHostedBy must be called before the relationships end, because
// the events say whether the host is a contact.
func (t Conversations) CloseHostedBy(ctx context.Context, host vocab.ID, now time.Time, tells func(trust string) bool) ([]vocab.ID, error) {
	return t.closeWhere(ctx, ending{host, false, now, tells}, `(c.host_uri = @whose OR c.partner_uri = @whose)`, host)
}

// Close closes an encrypted conversation that another actor has ended. The function tells, which
// may be nil, reports whether an event may be added.
func (t Conversations) Close(ctx context.Context, id uuid.UUID, by vocab.ID, now time.Time, tells func(trust string) bool) error {
	_, err := t.closeWhere(ctx, ending{by, false, now, tells}, `c.id = @whose`, id)
	return err
}

// Continue stores the successor of a conversation, unless the conversation has a successor. It
// reports whether it stored the successor.
func (t Conversations) Continue(ctx context.Context, id uuid.UUID, successor vocab.ID, own bool, now time.Time) (bool, error) {
	n, err := t.execBeside(ctx, "continue conversation", `WITH changed AS (`+addEntry+`, successor_uri = @successor WHERE id = @id AND successor_uri IS NULL RETURNING id, entries)
		INSERT INTO conversation_entries (conversation_id, n, seq, kind, own, at) SELECT id, entries, `+lastSeqOf("changed.id")+`, 'successor', @own, @now FROM changed`,
		named{"id": id, "successor": successor, "own": own, "now": now})
	return n == 1, err
}

// AddContinued stores a conversation of two that is closed from the start and has a successor. It
// adds an entry for the end and an entry for the successor. Both follow the message with the
// number seq in the log.
func (t Conversations) AddContinued(ctx context.Context, c Conversation, seq int64, now time.Time) error {
	_, err := t.execBeside(ctx, "add continued conversation", `WITH added AS (
			INSERT INTO conversations (id, uri, mode, host_uri, group_id, created_at, partner_uri, successor_uri, closed_at, entries) VALUES (@id, @uri, @mode, @host, @group, @created, @partner, @successor, @now, 2) RETURNING id)
		INSERT INTO conversation_entries (conversation_id, n, seq, kind, own, at) SELECT id, n, @seq, kind, false, @now FROM added, (VALUES (1, 'closed'), (2, 'successor')) AS e (n, kind)`,
		named{"id": c.ID, "uri": c.URI, "mode": c.Mode, "host": c.Host, "group": c.GroupID, "created": c.CreatedAt, "partner": c.Partner,
			"successor": c.Successor, "seq": seq, "now": now})
	return err
}

// NamePredecessor stores the predecessor of a conversation, unless one is stored already.
func (t Conversations) NamePredecessor(ctx context.Context, id uuid.UUID, predecessor vocab.ID) error {
	_, err := t.execBeside(ctx, "name predecessor", `UPDATE conversations SET predecessor_uri = $2 WHERE id = $1 AND predecessor_uri IS NULL`, id, predecessor)
	return err
}
