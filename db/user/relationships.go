package user

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/engine/vocab"
)

// The types of a relationship.
const (
	Follower  = "follower"  // the actor follows the user
	Following = "following" // the user follows the actor

	FriendOf      = vocab.FriendOf      // friends, after an Offer of either side
	CloseFriendOf = vocab.CloseFriendOf // close friends, likewise
)

// FriendTypes are the relationship types that begin when one side sends an Offer. An actor can
// have each type with the user, with or without the other type.
var FriendTypes = []string{FriendOf, CloseFriendOf}

// RelationshipTypes are all types.
var RelationshipTypes = append([]string{Follower, Following}, FriendTypes...)

// storedType returns the values of the columns type and relation for a type: all FriendTypes
// are stored as the type friend.
func storedType(kind string) (stored, relation string) {
	if slices.Contains(FriendTypes, kind) {
		return "friend", kind
	}
	return kind, ""
}

// The states of a relationship.
const (
	Pending  = "pending"
	Accepted = "accepted"
	Rejected = "rejected"
)

// Relationship is a follow or friendship between the user and an actor.
type Relationship struct {
	ID        uuid.UUID
	Actor     vocab.ID
	Type      string
	Status    string
	Activity  vocab.ID // the Follow or Offer that made it
	CreatedAt time.Time
	Direction string // of the Offer: Inbound when the actor asked; empty for follows
	Host      string // of a Follower, or of an Inbound Offer: its actor's registrable domain
}

const relationshipColumns = `id, actor_uri AS actor, CASE type WHEN 'friend' THEN relation ELSE type END AS type, status, activity_uri AS activity, created_at, direction, host`

// Find returns the relationship of a type between the user and the actor, or nil if there is
// none.
func (t Relationships) Find(ctx context.Context, kind string, actor vocab.ID) (*Relationship, error) {
	if r, read := t.ahead.relationship(kind, actor); read {
		return r, nil
	}
	stored, relation := storedType(kind)
	return one[Relationship](ctx, t.tx, "read relationship", `SELECT `+relationshipColumns+` FROM relationships
		WHERE actor_uri = $1 AND type = $2 AND relation = $3`, actor, stored, relation)
}

// FindAll returns all relationships between the user and the actor.
func (t Relationships) FindAll(ctx context.Context, actor vocab.ID) (all []Relationship, err error) {
	if !t.ahead.actors[actor] {
		return collect[Relationship](ctx, t.tx, "read relationships", `SELECT `+relationshipColumns+` FROM relationships WHERE actor_uri = $1`, actor)
	}
	for _, kind := range RelationshipTypes {
		if r, _ := t.ahead.relationship(kind, actor); r != nil {
			all = append(all, *r)
		}
	}
	return all, nil
}

// IsAccepted reports whether the user and the actor have an accepted relationship of a type.
func (t Relationships) IsAccepted(ctx context.Context, kind string, actor vocab.ID) (bool, error) {
	r, err := t.Find(ctx, kind, actor)
	return r != nil && r.Status == Accepted, err
}

// FindBy returns the follows of a type that a Follow with this uri made. There are several if
// actors of one server use the same uri.
func (t Relationships) FindBy(ctx context.Context, kind string, activity vocab.ID) ([]Relationship, error) {
	return collect[Relationship](ctx, t.tx, "read relationship", `SELECT `+relationshipColumns+` FROM relationships
		WHERE activity_uri = $1 AND type = $2 AND relation = ''`, activity, kind)
}

// Set adds a relationship, or updates the status and activity of an existing one.
func (t Relationships) Set(ctx context.Context, r Relationship, now time.Time) error {
	t.ahead.forgetActor(r.Actor)
	t.touched.touchActor(pagesOfRelationship(r.Type), r.Actor)
	stored, relation := storedType(r.Type)
	_, err := t.execBeside(ctx, "set relationship", `INSERT INTO relationships (id, actor_uri, type, relation, status, activity_uri, direction, host, created_at, updated_at)
		VALUES (@id, @actor, @type, @relation, @status, @activity, @direction, @host, @now, @now)
		ON CONFLICT (actor_uri, type, relation) DO UPDATE SET status = excluded.status, activity_uri = excluded.activity_uri,
			direction = excluded.direction, host = excluded.host, updated_at = excluded.updated_at`,
		named{"id": uuid.Must(uuid.NewV7()), "actor": r.Actor, "type": stored, "relation": relation, "status": r.Status, "activity": r.Activity,
			"direction": r.Direction, "host": r.Host, "now": now})
	return err
}

// pagesOfRelationship returns the collection that lists relationships of a type. No collection
// lists friends.
func pagesOfRelationship(kind string) Pages {
	switch kind {
	case Follower:
		return FollowersPages
	case Following:
		return FollowingPages
	}
	return 0
}

// End removes a relationship and reports whether there was one. It stores the time at as the end of
// a follow of the user (see Activities.FindEnd).
func (t Relationships) End(ctx context.Context, kind string, actor vocab.ID, at time.Time) (bool, error) {
	t.ahead.forgetActor(actor)
	t.touched.touchActor(pagesOfRelationship(kind), actor)
	stored, relation := storedType(kind)
	var began []vocab.ID
	err := t.query(ctx, "end relationship", column(&began), `DELETE FROM relationships WHERE actor_uri = $1 AND type = $2 AND relation = $3 RETURNING activity_uri`, actor, stored, relation)
	if err != nil || len(began) == 0 {
		return false, err
	}
	if kind == Follower {
		t.endActivity(Owned{began[0], actor}, at)
	}
	return true, nil
}

// EndAll removes all relationships between the user and the actor, as End does, and reports
// whether there was one.
func (t Relationships) EndAll(ctx context.Context, actor vocab.ID, at time.Time) (ended bool, err error) {
	for _, kind := range RelationshipTypes {
		was, err := t.End(ctx, kind, actor, at)
		if err != nil {
			return ended, err
		}
		ended = ended || was
	}
	return ended, nil
}

// List returns up to n accepted follows of a type after a place, the newest first.
func (t Relationships) List(ctx context.Context, kind string, after *Place, n int) ([]Relationship, error) {
	p := after.orFirst()
	return collect[Relationship](ctx, t.tx, "list relationships", `SELECT `+relationshipColumns+` FROM relationships
		WHERE type = @type AND status = 'accepted' AND relation = '' AND (created_at, id) < (@at, @id)
		ORDER BY created_at DESC, id DESC LIMIT @n`, named{"type": kind, "at": p.At, "id": p.ID, "n": n})
}

// Count counts the accepted follows of a type.
func (t Relationships) Count(ctx context.Context, kind string) (int, error) {
	return t.count(ctx, `SELECT count(*) FROM relationships WHERE type = $1 AND status = 'accepted' AND relation = ''`, kind)
}

// FindTies returns the types of the accepted relationships with each of these actors, except
// actors that the user blocks.
func (t Relationships) FindTies(ctx context.Context, some []vocab.ID) (map[vocab.ID][]string, error) {
	found, err := collect[Relationship](ctx, t.tx, "read ties", `SELECT `+relationshipColumns+` FROM relationships r WHERE actor_uri = ANY($1) AND status = 'accepted'
		AND NOT EXISTS (SELECT FROM blocks b WHERE b.actor_uri = r.actor_uri AND b.direction = $2)`, texts(some), Outbound)
	ties := map[vocab.ID][]string{}
	for _, r := range found {
		ties[r.Actor] = append(ties[r.Actor], r.Type)
	}
	return ties, err
}

// Destination is an actor with its inboxes.
type Destination struct {
	Actor       vocab.ID
	Written     string // the actor's id as its server writes it; empty when that is the canonical form
	Inbox       vocab.ID
	SharedInbox vocab.ID // empty when the actor's server has none
}

// destinationColumns are the columns of Destination. a is the actor.
const destinationColumns = `a.uri AS actor, coalesce(a.written, '') AS written, a.inbox, coalesce(a.shared_inbox, '') AS shared_inbox`

// FollowerDestinations returns the destinations of the accepted followers.
func (t Relationships) FollowerDestinations(ctx context.Context) ([]Destination, error) {
	return collect[Destination](ctx, t.tx, "list followers", `SELECT `+destinationColumns+`
		FROM relationships r JOIN actors a ON a.uri = r.actor_uri
		WHERE r.type = 'follower' AND r.status = 'accepted' AND r.relation = '' ORDER BY a.uri`)
}

// RelatedDestinations returns the destinations of actors that are no followers, but have another
// accepted relationship with the user. The servers of these actors show the user somewhere, too.
// RelatedDestinations leaves out actors that the user blocks.
func (t Relationships) RelatedDestinations(ctx context.Context) ([]Destination, error) {
	return collect[Destination](ctx, t.tx, "list related actors", `SELECT `+destinationColumns+`
		FROM actors a WHERE a.uri IN (SELECT actor_uri FROM relationships WHERE status = 'accepted')
		AND a.uri NOT IN (SELECT actor_uri FROM relationships WHERE type = 'follower' AND status = 'accepted' AND relation = '')
		AND NOT EXISTS (SELECT FROM blocks b WHERE b.actor_uri = a.uri AND b.direction = $1) ORDER BY a.uri`, Outbound)
}

// KnownDestinations returns the destinations of all actors of which the database has a copy
// with an inbox.
func (t Relationships) KnownDestinations(ctx context.Context) ([]Destination, error) {
	return collect[Destination](ctx, t.tx, "list actors", `SELECT `+destinationColumns+`
		FROM actors a WHERE a.inbox <> '' ORDER BY a.uri`)
}

// ListFollowers returns the ids of up to n accepted followers of this origin, sorted. Each id is
// in the form that the follower's server writes.
func (t Relationships) ListFollowers(ctx context.Context, origin string, n int) (ids []string, err error) {
	err = t.query(ctx, "list followers", func(rows pgx.Rows) error {
		for len(ids) < n && rows.Next() {
			var id vocab.ID
			var written string
			if err := rows.Scan(&id, &written); err != nil {
				return err
			}
			if id.Origin() == origin {
				ids = append(ids, written)
			}
		}
		return nil
	}, `SELECT r.actor_uri, coalesce(a.written, r.actor_uri) FROM relationships r LEFT JOIN actors a ON a.uri = r.actor_uri
		WHERE r.type = 'follower' AND r.status = 'accepted' AND r.relation = '' ORDER BY r.actor_uri`)
	return ids, err
}

// HasTalkedWith reports whether the user follows the actor, is friends with it, or has written to
// it in private. The parameter followers is the user's followers collection.
func (t Relationships) HasTalkedWith(ctx context.Context, followers, actor vocab.ID) (talks bool, err error) {
	err = t.row(ctx, "read relationship", `SELECT EXISTS (SELECT FROM relationships WHERE actor_uri = @actor AND type IN ('following', 'friend') AND status = 'accepted')
		OR `+wroteTo, []any{named{"followers": string(followers), "actor": string(actor)}}, &talks)
	return talks, err
}

// HasWrittenTo reports whether the user has written to the actor in private. The parameter
// followers is the user's followers collection.
func (t Relationships) HasWrittenTo(ctx context.Context, followers, actor vocab.ID) (wrote bool, err error) {
	err = t.row(ctx, "look for message", `SELECT `+wroteTo, []any{named{"followers": string(followers), "actor": string(actor)}}, &wrote)
	return wrote, err
}
