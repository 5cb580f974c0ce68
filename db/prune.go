package db

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

// pruneBatch is how many rows one transaction of a pruning looks at: tens of milliseconds for
// whoever waits for them.
const pruneBatch = 500

// Pruning says what is old in a user's database.
type Pruning struct {
	Me         vocab.ID  // the user's actor
	Before     time.Time // what arrived before is old; zero: nothing that others sent is
	Messages   time.Time // messages of conversations from before it are old; zero: none is
	Deliveries DeliveryRetention
	DryRun     bool // count, and take every batch back: what goes only because another batch has gone is not counted
}

// Pruned counts what was removed.
type Pruned struct {
	Activities int // with their places in the feed
	Objects    int
	Reactions  int // by those activities, or to those objects
	Actors     int // copies of actors that nothing refers to any more; a block does, and a vote
	Deliveries int // done long ago: their jobs remember the actors they reached
	Jobs       int // with their deliveries
	Lapsed     int // deliveries given up that were parked for too long
	Audits     int // records of actions
	Messages   int // of conversations, with Welcomes
}

func (p *Pruned) add(q Pruned) {
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

// Prune removes what others sent long ago and the user had nothing to do with. An activity stays,
// with its object, when
//   - its actor is a contact of the user's, and the id of the user, or of anything of the user's, is in either: the user is
//     named, answered, liked;
//   - its actor is a contact, and it is private: it addresses neither everybody nor the followers of its actor;
//   - it is such an activity of a follower, and one of the newest keptOfFollower of that actor;
//   - the user reacted to the object, or sent any activity about it but to accept or reject it;
//   - an answer to the object is stored: threads go from their ends;
//   - it is the stamp of a stored object's quote;
//   - its author shows the object first, and the user follows the author;
//   - it is a Follow, or answers one, and there is a relationship with its actor;
//   - it waits among the requests, which have bounds of their own.
//
// Contacts are the actors that the user chose: it follows them, is friends with them, has them in
// a group, wrote to them, or takes their private messages. To mention or to follow the user is
// anybody's own doing. Of the likes and boosts of the user's own objects the reactions stay.
//
// An actor that asks to be a friend waits for a month.
//
// Ids stay taken, and deletions remembered; moves are, as long as they keep an account from moving
// again. Finished deliveries of the user's own activities are forgotten as p.Deliveries says, and
// dispatches of half a year ago. It works in transactions of bounded size and rests after each as
// long as it took. When it ends early, what is done is done, and counted.
func (c *Cluster) Prune(ctx context.Context, u vocab.Username, p Pruning) (Pruned, error) {
	var all Pruned
	passes := []func(context.Context, *Tx, Pruning, reached) (Pruned, *reached, error){lapseDeliveries, shrinkDeliveries, forgetJobs, pruneAudit, pruneMessages, pruneRequests, pruneOffers}
	if !p.Before.IsZero() {
		passes = append(passes, pruneActivities, pruneOrphans, pruneActors, pruneMoves)
	}
	passes = append(passes, pruneSearchIndex) // when the objects are gone
	for _, pass := range passes {
		for at := (&reached{id: arrivedBy(p.Before)}); at != nil; {
			var did Pruned
			var next *reached
			began := time.Now()
			err := c.Write(ctx, u, func(ctx context.Context, tx *Tx) (err error) {
				if did, next, err = pass(ctx, tx, p, *at); err == nil && p.DryRun {
					err = errTakenBack
				}
				return err
			})
			if err != nil && !errors.Is(err, errTakenBack) {
				return all, err
			}
			all.add(did)
			at = next
			if err := postgres.Rest(ctx, time.Since(began)); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// errTakenBack undoes what was done only to be counted.
var errTakenBack = errors.New("it was a dry run")

// reached is how far a pass has come: rows are looked at from the newest on, actors in order of
// their uris, deliveries and their jobs from the oldest on.
type reached struct {
	id       uuid.UUID
	uri      string
	delivery int64
	job      uuid.UUID
}

// arrivedBy returns an id above those of all rows that arrived before t. Rows are given UUIDv7s as
// they arrive (RFC 9562 §5.7), by a clock that may be an hour off the database's.
func arrivedBy(t time.Time) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[:], uint64(t.Add(time.Hour).UnixMilli())<<16)
	return id
}

// keptOfFollower is how many activities stay of a follower that is no contact: a follow is the
// follower's own doing, and what it brings must not grow without end.
const keptOfFollower = 100

// In these queries $1 is the user's actor, $2 when what is old has arrived; author is the copy of
// an actor. In the first one $6 to $8 are the types of Types.Words, Relate and Answer.
var (
	oldActivities = `WITH a AS MATERIALIZED (SELECT id, uri, type, actor_uri, object_uri, raw FROM activities
			WHERE direction = 'inbound' AND id < $3 AND id >= $4 AND created_at < $2 ORDER BY id DESC LIMIT $5),
		who AS MATERIALIZED (SELECT DISTINCT actor_uri AS uri FROM a), ` + contactsAmong("who") + `
		SELECT a.id, coalesce(a.object_uri, ''), NOT (
			(a.actor_uri IN (SELECT uri FROM contacts) OR ` + newestOfFollower("a") + `)
				AND (` + involves("a.raw") + ` OR o.uri IS NOT NULL AND ` + involves("o.raw") + `
					OR (a.type = ANY($6) OR ` + saysAudience("a.raw") + `) AND ` + privateIn("a.raw", "a.actor_uri", authorFollowers) + `)
			OR a.type = ANY($7) AND EXISTS (SELECT FROM relationships r WHERE r.actor_uri = a.actor_uri)
			OR ` + isRequest + ` OR ` + touched("a.uri", "$8") + ` OR a.object_uri IS NOT NULL AND NOT ` + own("a.object_uri") + `
				AND (` + touched("a.object_uri", "$8") + ` OR ` + answered("a.object_uri") + ` OR ` + shown("a.object_uri") + `))
		FROM a LEFT JOIN objects o ON o.uri = a.object_uri LEFT JOIN actors author ON author.uri = a.actor_uri ORDER BY a.id DESC`

	// Those of the objects $3 that go; $4 are the types of Types.Answer.
	oldObjects = `WITH old AS MATERIALIZED (SELECT uri, raw FROM objects WHERE uri = ANY($3) AND created_at < $2),
		by AS MATERIALIZED (SELECT old.uri AS object, coalesce(b ->> 'id', b #>> '{}') AS uri FROM old, jsonb_path_query(old.raw, '$.attributedTo[*]') AS b),
		who AS MATERIALIZED (SELECT DISTINCT uri FROM by), ` + contactsAmong("who") + `
		SELECT o.uri FROM old o LEFT JOIN actors author ON author.uri = o.raw ->> 'attributedTo'
		WHERE NOT (` + own("o.uri") + ` OR EXISTS (SELECT FROM by WHERE by.object = o.uri AND by.uri = $1)
			OR EXISTS (SELECT FROM by JOIN contacts ON contacts.uri = by.uri WHERE by.object = o.uri)
				AND (` + involves("o.raw") + ` OR ` + saysAudience("o.raw") + ` AND ` + privateIn("o.raw", "o.raw ->> 'attributedTo'", authorFollowers) + `)
			OR ` + stamps + ` OR EXISTS (SELECT FROM activities x WHERE x.object_uri = o.uri) OR ` + touched("o.uri", "$4") + ` OR ` + answered("o.uri") + ` OR ` + shown("o.uri") + `)`
)

// contactsAmong names as contacts those of the uris of a small table that are contacts of the
// user's.
func contactsAmong(few string) string {
	uri := few + `.uri`
	return `contacts AS MATERIALIZED (SELECT uri FROM ` + few + ` WHERE EXISTS (SELECT FROM relationships r WHERE r.actor_uri = ` + uri + `
				AND (r.type = 'following' AND r.status <> 'rejected' OR r.type = 'friend' AND (r.status = 'accepted' OR r.direction = 'outbound')))
			OR EXISTS (SELECT FROM group_members g WHERE g.actor_uri = ` + uri + `) OR EXISTS (SELECT FROM correspondents c WHERE c.actor_uri = ` + uri + `)
			UNION ` + addressedIn(few, vocab.Create) + `)`
}

// newestOfFollower holds for an activity of a follower, one of the newest keptOfFollower.
func newestOfFollower(a string) string {
	return `CASE WHEN EXISTS (SELECT FROM relationships r WHERE r.actor_uri = ` + a + `.actor_uri AND r.type = 'follower' AND r.status = 'accepted')
		THEN (SELECT count(*) FROM (SELECT FROM activities n WHERE n.actor_uri = ` + a + `.actor_uri AND n.direction = 'inbound' AND n.id > ` + a + `.id LIMIT ` + strconv.Itoa(keptOfFollower) + `) newer) < ` + strconv.Itoa(keptOfFollower) + `
		ELSE false END`
}

// own holds for the uri of something of the user's.
func own(uri string) string { return `starts_with(` + uri + `, $1 || '/')` }

// involves holds for a document in which the user's id is, or one of something of the user's.
func involves(raw string) string {
	return `(strpos(` + raw + `::text, $1 || '"') > 0 OR strpos(` + raw + `::text, $1 || '/') > 0)`
}

// authorFollowers is the collection of the author's followers, as the copy of the author names it.
const authorFollowers = `(author.raw ->> 'followers')`

// touched holds for a uri that the user reacted to, or sent something about that is none of the
// answers: Follows are accepted without the user's doing.
func touched(uri, answers string) string {
	return `(EXISTS (SELECT FROM reactions r WHERE r.object_uri = ` + uri + ` AND r.actor_uri = $1)
		OR 'outbound' IN (SELECT x.direction FROM activities x WHERE x.object_uri = ` + uri + ` AND x.type <> ALL(` + answers + `)))`
}

// answered holds for the uri of an object to which an answer is stored.
func answered(uri string) string {
	return `EXISTS (SELECT FROM objects c WHERE c.raw ->> 'inReplyTo' = ` + uri + `)`
}

// shown holds for the uri of an object that a followed actor shows first. After the follow nobody
// tells what becomes of a pin, and it keeps nothing here.
func shown(uri string) string {
	return `EXISTS (SELECT FROM pins p JOIN relationships r ON r.actor_uri = p.actor_uri AND r.type = 'following' AND r.status = 'accepted'
		WHERE p.object_uri = ` + uri + `)`
}

// pruneActivities takes one batch of activities, with the objects that they leave behind, until
// all that is left of it has a reason to stay: a thread that lies in one batch goes as a whole.
func pruneActivities(ctx context.Context, t *Tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
	type row struct {
		ID     uuid.UUID
		Object string
		Goes   bool
	}
	for last := (uuid.UUID{}); ; {
		rows, err := collect[row](ctx, t, "find old activities", oldActivities, p.Me, p.Before, at.id, last, pruneBatch, t.types.Words, t.types.Relate, t.types.Answer)
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
		did.add(gone)
		did.add(left)
		if left.Objects == 0 || len(going) == len(rows) {
			return did, next, nil
		}
	}
}

// removeActivities removes activities with their places in the feed, and with their reactions but
// to the user's own objects.
func (t *Tx) removeActivities(ctx context.Context, me vocab.ID, ids []uuid.UUID) (did Pruned, err error) {
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

// pruneObjects removes those of the objects that have no reason to stay.
func pruneObjects(ctx context.Context, t *Tx, p Pruning, uris []string) (Pruned, error) {
	if len(uris) == 0 {
		return Pruned{}, nil
	}
	type row struct{ URI string }
	rows, err := collect[row](ctx, t, "find old objects", oldObjects, p.Me, p.Before, uris, t.types.Answer)
	if err != nil || len(rows) == 0 {
		return Pruned{}, err
	}
	going := make([]string, len(rows))
	for i, r := range rows {
		going[i] = r.URI
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

// pruneOrphans takes one batch of objects: those go that no activity brought, or none that is
// left.
func pruneOrphans(ctx context.Context, t *Tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
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

// oldActors removes those of the copies of actors $3 that are all that the database holds of the
// actor, and that no activity of the user's is about or for.
var oldActors = `WITH few AS MATERIALIZED (SELECT uri FROM actors WHERE uri = ANY($3) AND uri <> $1 AND created_at < $2
		AND ` + schema.HeldNowhere("actors.uri", "actors") + `
		AND NOT EXISTS (SELECT FROM activities a WHERE a.object_uri = actors.uri)),
	needed AS MATERIALIZED (
		` + addressedIn("few", "") + `
		UNION ` + schema.HeldElsewhere("few") + `)
	DELETE FROM actors WHERE uri IN (SELECT uri FROM few EXCEPT SELECT uri FROM needed)`

// pruneActors takes one batch of the user's copies of actors. They are locked before it is looked
// who needs them: a transaction that makes a relationship saves the copy first, so it is over by
// then, or makes the copy again.
func pruneActors(ctx context.Context, t *Tx, p Pruning, at reached) (did Pruned, next *reached, err error) {
	type row struct{ URI string }
	rows, err := collect[row](ctx, t, "list actors", `SELECT uri FROM actors WHERE uri > $1 ORDER BY uri LIMIT $2 FOR UPDATE`, at.uri, pruneBatch)
	if err != nil {
		return did, nil, err
	}
	uris := make([]string, len(rows))
	for i, r := range rows {
		uris[i] = r.URI
	}
	if len(rows) == pruneBatch {
		next = &reached{uri: uris[len(uris)-1]}
	}
	n, err := t.exec(ctx, "prune actors", oldActors, p.Me, p.Before, uris)
	return Pruned{Actors: int(n)}, next, err
}

// pruneMoves removes the moves that decide nothing any more, of which there are few.
func pruneMoves(ctx context.Context, t *Tx, _ Pruning, _ reached) (Pruned, *reached, error) {
	_, err := t.execBeside(ctx, "prune moves", `DELETE FROM moves WHERE moved_at <= $1`, time.Now().Add(-MoveAgain))
	return Pruned{}, nil, err
}
