package user

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/db/schema"
	"github.com/lightweb/lightweb/engine/vocab"
)

// pruneBatch limits how many rows of a table one transaction of a pruning looks at, in most
// passes. Such a transaction makes others wait for tens of milliseconds.
const pruneBatch = 500

// pruneTime limits the time of one transaction of a pruning. A batch can take long in a database
// whose indexes are not in memory.
const pruneTime = 10 * time.Minute

// Pruning says which rows of a user's database are old.
type Pruning struct {
	Me         vocab.ID  // the user's actor
	Before     time.Time // rows that arrived before this time are old; zero: no rows that others sent are old
	Messages   time.Time // messages of conversations from before this time are old; zero: none are
	Deliveries DeliveryRetention
	DryRun     bool // count and roll back each batch; rows that could be removed only after another batch are not counted
}

// Pruned counts the removed rows.
type Pruned struct {
	Activities int `json:"pruned_activities"` // with their entries in the feed
	Objects    int `json:"pruned_objects"`
	Reactions  int `json:"pruned_reactions"` // by those activities, or to those objects
	Actors     int `json:"pruned_actors"`    // copies of actors that no other row names, such as a block or a vote
	// Deliveries counts deliveries that succeeded long ago. Their recipients are now stored
	// in their jobs.
	Deliveries int `json:"pruned_deliveries"`
	Jobs       int `json:"pruned_jobs"`       // with their deliveries
	Lapsed     int `json:"failed_deliveries"` // parked deliveries that were given up
	Audits     int `json:"pruned_audit"`      // records of actions
	Messages   int `json:"pruned_messages"`   // of conversations, with Welcomes, lapsed invitations and held activities
}

// Add adds the counts of q.
func (p *Pruned) Add(q Pruned) {
	p.Activities += q.Activities
	p.Objects += q.Objects
	p.Reactions += q.Reactions
	p.Actors += q.Actors
	p.Deliveries += q.Deliveries
	p.Jobs += q.Jobs
	p.Lapsed += q.Lapsed
	p.Audits += q.Audits
	p.Messages += q.Messages
}

// Prune removes old activities and objects of others with which the user had nothing to do. It
// keeps an activity and its object if one of these holds:
//
//   - Its actor is a contact of the user, and the activity or the object contains the id of the
//     user or of one of the user's objects. Such an activity names, answers or likes the user.
//   - Its actor is a contact, and it is private: it addresses neither everybody, nor everybody on
//     its actor's server, nor the followers of its actor. If it has no to, cc and audience, it
//     is private only if it contains the text of an object (Types.Words). The copy of a public
//     post that its author made less public is not private (see audience.Narrow).
//   - Its actor is a follower, it is one of the newest keptOfFollower activities of that actor,
//     and it is private, or it or the object contains such an id.
//   - The user reacted to it or to the object, or sent an activity about one of them other than
//     accepting or rejecting it.
//   - An answer to the object is stored. So a thread loses its last answers first.
//   - The object is the stamp of a stored object's quote. Then only the object is kept.
//   - The author pinned the object, and the user follows the author.
//   - It is a Follow, an Offer or an answer to one of them (Types.Relate), and there is a
//     relationship with its actor.
//   - It waits among the Requests, which have limits of their own.
//
// Contacts are the actors that the user chose: the user follows them, is friends with them, or has
// asked to; has them in a group, wrote to them, or accepted their private messages. Mentioning or
// following the user does not make an actor a contact, since anybody can do that. Reactions,
// answers and pins of the user's own objects do not keep the activities about them. Reactions to
// the user's own objects stay when their activities are removed.
//
// Message requests, and the requests of actors to be friends, are removed after 30 days without
// an answer of the user.
//
// Ids stay claimed, and deletions stay stored. A move stays until the account may move again.
// Deliveries are given up and removed as p.Deliveries says, messages of conversations as
// p.Messages says, and records of actions after half a year. Stored answers to dispatches are
// removed once they are not replayed any more.
// Prune works in transactions of bounded size. After each transaction it rests for as long as the
// transaction took. If Prune ends early, the committed work stays and is counted.
func (d *Databases) Prune(ctx context.Context, u vocab.Username, p Pruning) (Pruned, error) {
	var all Pruned
	passes := []func(context.Context, *tx, Pruning, reached) (Pruned, *reached, error){lapseDeliveries, shrinkDeliveries, forgetJobs, pruneAudit, pruneAnswers, pruneMessages, pruneCommits, pruneReceivedCommits, pruneInvitations, pruneRequests, pruneOffers}
	if !p.Before.IsZero() {
		passes = append(passes, pruneActivities, pruneOrphans, pruneActors, pruneMoves)
	}
	passes = append(passes, pruneSearchIndex) // after the passes that remove objects
	for _, pass := range passes {
		for at := (&reached{id: arrivedBy(p.Before)}); at != nil; {
			var did Pruned
			var next *reached
			began := time.Now()
			err := d.writeBatch(ctx, u, func(ctx context.Context, tx *Tx) (err error) {
				if did, next, err = pass(ctx, tx.tx, p, *at); err == nil && p.DryRun {
					err = errTakenBack
				}
				return err
			})
			if err != nil && !errors.Is(err, errTakenBack) {
				return all, err
			}
			all.Add(did)
			at = next
			if err := postgres.Rest(ctx, time.Since(began)); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// writeBatch writes a batch of a pruning. A batch may take longer than other transactions.
func (d *Databases) writeBatch(ctx context.Context, u vocab.Username, work func(context.Context, *Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, pruneTime)
	defer cancel()
	return d.Write(ctx, u, work)
}

// errTakenBack rolls back a batch of a dry run.
var errTakenBack = errors.New("it was a dry run")

// reached is the position of a pass. A pass goes through activities and objects from the newest
// on, through actors and the search index by uri, and through deliveries and their jobs from the
// oldest on. Through commits it goes from the newest of each conversation on.
type reached struct {
	id       uuid.UUID
	uri      string
	delivery int64
	job      uuid.UUID
	commit   *reachedCommit
}

// arrivedBy returns an id above those of all rows that arrived before t. Rows get UUIDv7s when
// they arrive (RFC 9562 §5.7), from a clock that may differ by an hour from the database's.
func arrivedBy(t time.Time) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:], uint64(t.Add(time.Hour).UnixMilli())<<16)
	return id
}

// keptOfFollower limits how many activities of a follower that is no contact are kept (see
// Prune). Anybody can follow the user, so the stored activities of followers must be bounded.
const keptOfFollower = 100

// In these queries @me is the user's actor, and @before the time before which old rows arrived. The
// table author has the copy of the actor that sent the activity or wrote the object. The types of
// Types.Words, Relate and Answer are @words, @relate and @answers.
var (
	oldActivities = `WITH a AS MATERIALIZED (SELECT id, uri, type, actor_uri, object_uri, raw FROM activities
			WHERE direction = 'inbound' AND id < @below AND id >= @from AND created_at < @before ORDER BY id DESC LIMIT @n),
		who AS MATERIALIZED (SELECT DISTINCT actor_uri AS uri FROM a), ` + contactsAmong("who") + `
		SELECT a.id, coalesce(a.object_uri, '') AS object, NOT (
			(a.actor_uri IN (SELECT uri FROM contacts) OR ` + newestOfFollower("a") + `)
				AND (` + involves("a.raw") + ` OR o.uri IS NOT NULL AND ` + involves("o.raw") + `
					OR (a.type = ANY(@words) OR ` + saysAudience("a.raw") + `) AND ` + privateIn("a.raw", "a.actor_uri", authorFollowers) + `)
			OR a.type = ANY(@relate) AND EXISTS (SELECT FROM relationships r WHERE r.actor_uri = a.actor_uri)
			OR ` + isRequest + ` OR ` + actedOn("a.uri") + ` OR a.object_uri IS NOT NULL AND NOT ` + own("a.object_uri") + `
				AND (` + actedOn("a.object_uri") + ` OR ` + answered("a.object_uri") + ` OR ` + shown("a.object_uri") + `)) AS goes
		FROM a LEFT JOIN objects o ON o.uri = a.object_uri LEFT JOIN actors author ON author.uri = a.actor_uri ORDER BY a.id DESC`

	// oldObjects selects, among the objects @uris, the ones to remove.
	oldObjects = `WITH old AS MATERIALIZED (SELECT uri, raw FROM objects WHERE uri = ANY(@uris) AND created_at < @before),
		by AS MATERIALIZED (SELECT old.uri AS object, coalesce(b ->> 'id', b #>> '{}') AS uri FROM old, jsonb_path_query(old.raw, '$.attributedTo[*]') AS b),
		who AS MATERIALIZED (SELECT DISTINCT uri FROM by), ` + contactsAmong("who") + `
		SELECT o.uri FROM old o LEFT JOIN actors author ON author.uri = o.raw ->> 'attributedTo'
		WHERE NOT (` + own("o.uri") + ` OR EXISTS (SELECT FROM by WHERE by.object = o.uri AND by.uri = @me)
			OR EXISTS (SELECT FROM by JOIN contacts ON contacts.uri = by.uri WHERE by.object = o.uri)
				AND (` + involves("o.raw") + ` OR NOT ` + narrowedIn("o.raw") + ` AND ` + saysAudience("o.raw") + ` AND ` + privateIn("o.raw", "o.raw ->> 'attributedTo'", authorFollowers) + `)
			OR ` + stamps + ` OR EXISTS (SELECT FROM activities x WHERE x.object_uri = o.uri) OR ` + actedOn("o.uri") + ` OR ` + answered("o.uri") + ` OR ` + shown("o.uri") + `)`
)

// contactsAmong defines a table contacts: those uris of a small table that belong to contacts of
// the user (see Prune).
func contactsAmong(few string) string {
	uri := few + `.uri`
	return `contacts AS MATERIALIZED (SELECT uri FROM ` + few + ` WHERE EXISTS (SELECT FROM relationships r WHERE r.actor_uri = ` + uri + `
				AND (r.type = 'following' AND r.status <> 'rejected' OR r.type = 'friend' AND (r.status = 'accepted' OR r.direction = 'outbound')))
			OR EXISTS (SELECT FROM group_members g WHERE g.actor_uri = ` + uri + `) OR EXISTS (SELECT FROM correspondents c WHERE c.actor_uri = ` + uri + `)
			UNION ` + addressedIn(few, vocab.Create) + `)`
}

// newestOfFollower holds for an activity of a follower if the follower has sent fewer than
// keptOfFollower newer ones.
func newestOfFollower(a string) string {
	return `CASE WHEN EXISTS (SELECT FROM relationships r WHERE r.actor_uri = ` + a + `.actor_uri AND r.type = 'follower' AND r.status = 'accepted')
		THEN (SELECT count(*) FROM (SELECT FROM activities n WHERE n.actor_uri = ` + a + `.actor_uri AND n.direction = 'inbound' AND n.id > ` + a + `.id LIMIT ` + strconv.Itoa(keptOfFollower) + `) newer) < ` + strconv.Itoa(keptOfFollower) + `
		ELSE false END`
}

// own holds for the uri of one of the user's objects.
func own(uri string) string { return `starts_with(` + uri + `, @me || '/')` }

// involves holds for a document that contains the id of the user or of one of the user's
// objects.
func involves(raw string) string {
	return `(strpos(` + raw + `::text, @me || '"') > 0 OR strpos(` + raw + `::text, @me || '/') > 0)`
}

// authorFollowers is the author's followers collection, as named in the copy of the author.
const authorFollowers = `(author.raw ->> 'followers')`

// actedOn holds for a uri that the user reacted to, or about which the user sent an activity. An
// activity whose type is among @answers does not count, because Follows are accepted automatically.
func actedOn(uri string) string {
	return `(EXISTS (SELECT FROM reactions r WHERE r.object_uri = ` + uri + ` AND r.actor_uri = @me)
		OR 'outbound' IN (SELECT x.direction FROM activities x WHERE x.object_uri = ` + uri + ` AND x.type <> ALL(@answers)))`
}

// answered holds for the uri of an object that has a stored answer. An answer names its parent by
// an id or an object, alone or in a list. An index supports each of the comparisons.
func answered(uri string) string {
	const parent = `c.raw -> 'inReplyTo'`
	return `EXISTS (SELECT FROM objects c WHERE c.raw ->> 'inReplyTo' = ` + uri + ` OR ` + parent + ` ? ` + uri + `
		OR ` + parent + ` @> jsonb_build_object('id', ` + uri + `) OR ` + parent + ` @> jsonb_build_array(jsonb_build_object('id', ` + uri + `)))`
}

// shown returns the SQL condition that a followed actor has pinned the object with this uri. A pin
// of any other actor does not count, because this server does not learn when it is removed.
func shown(uri string) string {
	return `EXISTS (SELECT FROM pins p JOIN relationships r ON r.actor_uri = p.actor_uri AND r.type = 'following' AND r.status = 'accepted'
		WHERE p.object_uri = ` + uri + `)`
}

// pruneActivities prunes one batch of activities, and the objects that no activity refers to any
// more. It repeats the batch until it removes nothing more, so that a thread that lies within one
// batch is removed as a whole.
func pruneActivities(ctx context.Context, t *tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
	type row struct {
		ID     uuid.UUID
		Object string
		Goes   bool
	}
	for last := (uuid.UUID{}); ; {
		rows, err := collect[row](ctx, t, "find old activities", oldActivities,
			named{"me": p.Me, "before": p.Before, "below": at.id, "from": last, "n": pruneBatch, "words": t.types.Words, "relate": t.types.Relate, "answers": t.types.Answer})
		if err != nil {
			return did, nil, err
		}
		if len(rows) == pruneBatch {
			next = &reached{id: rows[len(rows)-1].ID}
		}
		if len(rows) > 0 {
			last = rows[len(rows)-1].ID
		}
		var going []uuid.UUID
		var about []string
		for _, r := range rows {
			if r.Goes {
				going, about = append(going, r.ID), append(about, r.Object)
			}
		}
		gone, err := t.removeActivities(ctx, p.Me, going)
		if err != nil {
			return did, nil, err
		}
		left, err := pruneObjects(ctx, t, p, about)
		if err != nil {
			return did, nil, err
		}
		did.Add(gone)
		did.Add(left)
		if left.Objects == 0 || len(going) == len(rows) {
			return did, next, nil
		}
	}
}

// removeActivities removes activities, their entries in the feed and their reactions, except
// reactions to the user's own objects.
func (t *tx) removeActivities(ctx context.Context, me vocab.ID, ids []uuid.UUID) (did Pruned, err error) {
	const of = ` t USING activities a WHERE a.id = ANY($1) AND t.activity_uri = a.uri AND t.actor_uri = a.actor_uri`
	if len(ids) == 0 {
		return Pruned{}, nil
	}
	if _, err := t.exec(ctx, "prune feed", `DELETE FROM feed`+of, ids); err != nil {
		return Pruned{}, err
	}
	reactions, err := t.exec(ctx, "prune reactions", `DELETE FROM reactions`+of+` AND NOT starts_with(t.object_uri, $2 || '/')`, ids, me)
	if err != nil {
		return Pruned{}, err
	}
	activities, err := t.exec(ctx, "prune activities", `DELETE FROM activities WHERE id = ANY($1)`, ids)
	return Pruned{Activities: int(activities), Reactions: int(reactions)}, err
}

// findOldObjects returns those of the objects that Prune has no reason to keep. It locks these
// objects and then judges them once more. By then a transaction that called Hold for one of them
// has ended, and a later transaction that calls Hold waits.
func findOldObjects(ctx context.Context, t *tx, p Pruning, uris []string) (going []string, err error) {
	judge := func(uris []string) (old []string, err error) {
		err = t.query(ctx, "find old objects", column(&old), oldObjects, named{"me": p.Me, "before": p.Before, "uris": uris, "answers": t.types.Answer})
		return old, err
	}
	if going, err = judge(uris); err != nil || len(going) == 0 {
		return nil, err
	}
	var locked []string
	if err := t.query(ctx, "lock old objects", column(&locked), `SELECT uri FROM objects WHERE uri = ANY($1) ORDER BY uri FOR UPDATE`, going); err != nil {
		return nil, err
	}
	return judge(locked)
}

// pruneObjects removes those of the objects that Prune has no reason to keep.
func pruneObjects(ctx context.Context, t *tx, p Pruning, uris []string) (Pruned, error) {
	if len(uris) == 0 {
		return Pruned{}, nil
	}
	going, err := findOldObjects(ctx, t, p, uris)
	if err != nil || len(going) == 0 {
		return Pruned{}, err
	}
	reactions, err := t.exec(ctx, "prune reactions", `DELETE FROM reactions WHERE object_uri = ANY($1)`, going)
	if err != nil {
		return Pruned{}, err
	}
	if _, err := t.exec(ctx, "prune pins", `DELETE FROM pins WHERE object_uri = ANY($1)`, going); err != nil {
		return Pruned{}, err
	}
	objects, err := t.exec(ctx, "prune objects", `DELETE FROM objects WHERE uri = ANY($1)`, going)
	return Pruned{Objects: int(objects), Reactions: int(reactions)}, err
}

// pruneOrphans looks at one batch of old objects, and removes those that Prune has no reason to
// keep. These can be objects that came without an activity, or whose activities are gone.
func pruneOrphans(ctx context.Context, t *tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
	type row struct {
		ID  uuid.UUID
		URI string
	}
	rows, err := collect[row](ctx, t, "list old objects", `SELECT id, uri FROM objects WHERE id < $1 AND created_at < $2 ORDER BY id DESC LIMIT $3`,
		at.id, p.Before, pruneBatch)
	if err != nil {
		return did, nil, err
	}
	uris := make([]string, len(rows))
	for i, r := range rows {
		uris[i] = r.URI
	}
	if len(rows) == pruneBatch {
		next = &reached{id: rows[len(rows)-1].ID}
	}
	did, err = pruneObjects(ctx, t, p, uris)
	return did, next, err
}

// oldActors removes copies of the actors $3. It removes a copy if the database has no other row
// of the actor, no stored activity is about the actor, and no sent activity addresses the actor.
var oldActors = `WITH few AS MATERIALIZED (SELECT uri FROM actors WHERE uri = ANY($3) AND uri <> $1 AND created_at < $2
		AND ` + schema.HeldNowhere("actors.uri", "actors") + `
		AND NOT EXISTS (SELECT FROM activities a WHERE a.object_uri = actors.uri)),
	needed AS MATERIALIZED (
		` + addressedIn("few", "") + `
		UNION ` + schema.HeldElsewhere("few") + `)
	DELETE FROM actors WHERE uri IN (SELECT uri FROM few EXCEPT SELECT uri FROM needed)`

// pruneActors prunes one batch of the user's copies of actors. It locks the copies before it
// looks for rows that need them. A transaction that makes a relationship saves the copy first. So
// it has either committed by then, or it saves the copy again after pruneActors has committed.
func pruneActors(ctx context.Context, t *tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
	var uris []string
	err = t.query(ctx, "list actors", column(&uris), `SELECT uri FROM actors WHERE uri > $1 ORDER BY uri LIMIT $2 FOR UPDATE`, at.uri, pruneBatch)
	if err != nil {
		return did, nil, err
	}
	if len(uris) == pruneBatch {
		next = &reached{uri: uris[len(uris)-1]}
	}
	n, err := t.exec(ctx, "prune actors", oldActors, p.Me, p.Before, uris)
	return Pruned{Actors: int(n)}, next, err
}

// pruneMoves removes the moves after which the account may move again. There are few moves, so it
// removes all of them in one transaction.
func pruneMoves(ctx context.Context, t *tx, _ Pruning, _ reached) (Pruned, *reached, error) {
	_, err := t.execBeside(ctx, "prune moves", `DELETE FROM moves WHERE moved_at <= $1`, time.Now().Add(-MoveAgain))
	return Pruned{}, nil, err
}
