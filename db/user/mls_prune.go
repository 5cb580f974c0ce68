package user

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// keptEarly is how long an early message waits at most: as long as this engine tries a delivery. So
// the commits before it may come as late.
const keptEarly = 8 * 24 * time.Hour

func laterOf(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// pruneMessages removes old Welcomes, old held activities (see HeldActivity), old early messages,
// and old messages of the user's conversations. It leaves commits to pruneCommits, except those
// that no host has put in order. A device that has not fetched such a Welcome by then must join
// again. A conversation keeps its epoch, and numbers of removed messages are not assigned again.
func pruneMessages(ctx context.Context, t *tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	if p.Messages.IsZero() {
		return did, nil, nil
	}
	messages, err := t.execBeside(ctx, "prune messages", `DELETE FROM mls_log WHERE (conversation_id, seq) IN
		(SELECT conversation_id, seq FROM mls_log WHERE kind <> 'commit' AND created_at < $1 ORDER BY created_at LIMIT $2)`, p.Messages, pruneBatch)
	if err != nil {
		return did, nil, err
	}
	received, err := t.execBeside(ctx, "prune received messages", `DELETE FROM mls_inbox WHERE arrival IN
		(SELECT arrival FROM mls_inbox WHERE (kind <> 'commit' OR seq IS NULL) AND received_at < $1 ORDER BY received_at LIMIT $2)`, p.Messages, pruneBatch)
	if err != nil {
		return did, nil, err
	}
	welcomes, err := t.execBeside(ctx, "prune welcomes", `DELETE FROM mls_welcomes WHERE id IN (SELECT id FROM mls_welcomes WHERE created_at < $1 LIMIT $2)`, p.Messages, pruneBatch)
	if err != nil {
		return did, nil, err
	}
	early, err := t.execBeside(ctx, "prune early messages", `DELETE FROM mls_early WHERE arrival IN (SELECT arrival FROM mls_early WHERE received_at < $1 ORDER BY arrival LIMIT $2)`, laterOf(p.Messages, p.Deliveries.Now.Add(-keptEarly)), pruneBatch)
	if err != nil {
		return did, nil, err
	}
	held, err := t.execBeside(ctx, "prune held activities", `DELETE FROM mls_held WHERE (conversation_id, content_hash, place) IN
		(SELECT conversation_id, content_hash, place FROM mls_held WHERE created_at < $1 ORDER BY created_at LIMIT $2)`, p.Messages, pruneBatch)
	if max(messages, received, welcomes, early, held) == pruneBatch && !p.DryRun {
		next = &reached{}
	}
	return Pruned{Messages: int(messages + received + welcomes + early + held)}, next, err
}

// Bounds on the old commits that are kept of a conversation. The newest are kept.
const (
	keptCommits     = 10_000
	keptCommitBytes = 64 << 20
)

// pruneCommits removes old commits from the logs of the user's conversations. It keeps those of the
// present generation of an open conversation, within bounds: a member's device may have been off
// for months, and applies them one after the other. The oldest are removed first, so the log of a
// device that comes too late begins with a later epoch.
func pruneCommits(ctx context.Context, t *tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
	return t.pruneCommits(ctx, p, at, "prune commits", pruneLog)
}

// pruneReceivedCommits does what pruneCommits does, in the user's copies of conversations that
// others host, or that have no host.
func pruneReceivedCommits(ctx context.Context, t *tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
	return t.pruneCommits(ctx, p, at, "prune received commits", pruneInbox)
}

// reachedCommit is the position of a pass through commits. The pass goes from the newest commit of
// a conversation to the oldest.
type reachedCommit struct {
	Conversation uuid.UUID
	Generation   int32
	Epoch        int64
	Place        int64 // a number of the row: an epoch may have several commits in a copy
	Needed       int64 // how many of this conversation are needed so far
	Bytes        int64 // of the needed ones
}

// beforeCommits is the position where a pass begins.
var beforeCommits = reachedCommit{Conversation: uuid.Max, Generation: math.MaxInt32, Epoch: math.MaxInt64, Place: math.MaxInt64}

func (t *tx) pruneCommits(ctx context.Context, p Pruning, at reached, attempt, query string) (did Pruned, next *reached, err error) {
	if p.Messages.IsZero() {
		return did, nil, nil
	}
	from := beforeCommits
	if at.commit != nil {
		from = *at.commit
	}
	type batch struct {
		reachedCommit
		Read, Gone int
	}
	b, err := one[batch](ctx, t, attempt, query,
		named{"conversation": from.Conversation, "generation": from.Generation, "epoch": from.Epoch, "place": from.Place, "needed": from.Needed,
			"bytes": from.Bytes, "before": p.Messages, "me": p.Me})
	if err != nil || b == nil {
		return did, nil, err
	}
	if b.Read == pruneBatch {
		next = &reached{commit: &b.reachedCommit}
	}
	return Pruned{Messages: b.Gone}, next, nil
}

// In these queries @before is the time before which old rows arrived, and @me the user's actor. The
// other arguments are a reachedCommit.
var (
	pruneLog = pruneTable("mls_log", "seq", "created_at", `EXISTS (SELECT FROM mls_conversations m
		WHERE m.id = s.conversation_id AND m.generation = s.generation AND m.status <> 'closed') AND @me::text <> ''`)

	// A user who was removed has no open conversation, nor has one who was only invited. An
	// outsider's messages have bounds of their own, which are free again once these are old.
	pruneInbox = pruneTable("mls_inbox", "arrival", "received_at", `EXISTS (SELECT FROM mls_joined j JOIN conversations c USING (id)
		WHERE j.id = s.conversation_id AND j.generation = s.generation AND j.status IN ('active', 'reset_pending') AND c.confirmed
			AND NOT EXISTS (SELECT FROM conversation_members me WHERE me.conversation_id = j.id AND me.actor_uri = @me AND me.left_seq IS NOT NULL)
			AND (c.host_uri <> '' OR EXISTS (SELECT FROM conversation_members b WHERE b.conversation_id = j.id AND b.actor_uri = s.sender_uri)))`)
)

// pruneTable returns the statement that removes the old ones of a batch of commits, unless the
// condition needed holds for them and they are within the bounds. Its row is the position of the
// last commit, how many it has read, and how many it has removed.
func pruneTable(table, place, at, needed string) string {
	number := func(n int) string { return strconv.Itoa(n) }
	return `WITH batch AS MATERIALIZED (SELECT s.conversation_id, s.generation, s.epoch, s.` + place + ` AS place, s.` + at + ` AS at, octet_length(s.content) AS bytes, ` + needed + ` AS needed
			FROM ` + table + ` s WHERE s.kind = 'commit' AND s.seq IS NOT NULL AND (s.conversation_id, s.generation, s.epoch, s.` + place + `) < (@conversation::uuid, @generation::int, @epoch::bigint, @place::bigint)
			ORDER BY s.conversation_id DESC, s.generation DESC, s.epoch DESC, s.` + place + ` DESC LIMIT ` + number(pruneBatch) + `),
		counted AS MATERIALIZED (SELECT batch.*, count(*) FILTER (WHERE needed) OVER newer + CASE WHEN conversation_id = @conversation THEN @needed::bigint ELSE 0 END AS n,
				(coalesce(sum(bytes) FILTER (WHERE needed) OVER newer, 0) + CASE WHEN conversation_id = @conversation THEN @bytes::bigint ELSE 0 END)::bigint AS total
			FROM batch WINDOW newer AS (PARTITION BY conversation_id ORDER BY generation DESC, epoch DESC, place DESC)),
		gone AS (DELETE FROM ` + table + ` USING counted c WHERE ` + table + `.conversation_id = c.conversation_id AND ` + table + `.` + place + ` = c.place
			AND c.at < @before AND NOT (c.needed AND c.n <= ` + number(keptCommits) + ` AND c.total <= ` + number(keptCommitBytes) + `) RETURNING 1)
		SELECT conversation_id AS conversation, generation, epoch, place, n AS needed, total AS bytes, (SELECT count(*) FROM batch) AS read, (SELECT count(*) FROM gone) AS gone
			FROM counted ORDER BY conversation_id, generation, epoch, place LIMIT 1`
}

// pruneInvitations removes old conversations that no device of the user has joined and whose
// Welcome is gone. Nobody can join them any more. A conversation stays if it is the one of the user
// with another actor, or if another conversation names it as its successor.
func pruneInvitations(ctx context.Context, t *tx, p Pruning, _ reached) (did Pruned, next *reached, err error) {
	if p.Messages.IsZero() {
		return did, nil, nil
	}
	if err := t.lock(ctx, messagesLock); err != nil { // a Welcome to such a conversation may arrive
		return did, nil, err
	}
	lapsed, err := t.execBeside(ctx, "prune invitations", `DELETE FROM conversations WHERE id IN (SELECT c.id FROM conversations c JOIN mls_joined USING (id)
		WHERE NOT c.confirmed AND c.partner_uri IS NULL AND c.created_at < $1 AND NOT EXISTS (SELECT FROM conversations o WHERE o.successor_uri = c.uri)
			AND NOT EXISTS (SELECT FROM mls_welcomes w WHERE w.conversation_id = c.id AND w.state IN ('available', 'in_flight')) LIMIT $2)`, p.Messages, pruneBatch)
	if lapsed == pruneBatch && !p.DryRun {
		next = &reached{}
	}
	return Pruned{Messages: int(lapsed)}, next, err
}
