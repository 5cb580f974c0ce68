package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The styles of relays (FEP-ae0c): the object of the Follow, and in which form posts are sent to them.
const (
	RelayMastodon = "mastodon" // follows everybody; takes activities as they are
	RelayLitePub  = "litepub"  // follows the relay's actor; takes an Announce by the instance actor
)

// Relay is a server that passes public posts on to all who subscribed to it. Its State is that of the instance actor's
// Follow: Pending, Accepted or Rejected.
type Relay struct {
	Actor     vocab.ID
	Inbox     vocab.ID
	Style     string
	State     string
	Follow    vocab.ID // the Follow by which this server subscribes
	CreatedAt time.Time
	UpdatedAt time.Time
}

const relayColumns = `actor_uri, inbox, style, state, follow_uri, created_at, updated_at`

// SaveRelay keeps a relay, in place of the one that is there under its actor.
func (c *Cluster) SaveRelay(ctx context.Context, r Relay, now time.Time) error {
	_, err := c.instance.Exec(ctx, `INSERT INTO relays (actor_uri, inbox, style, state, follow_uri, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $6)
		ON CONFLICT (actor_uri) DO UPDATE SET inbox = excluded.inbox, style = excluded.style, state = excluded.state, follow_uri = excluded.follow_uri, updated_at = excluded.updated_at`,
		r.Actor, r.Inbox, r.Style, r.State, r.Follow, now)
	return postgres.Fault("keep relay", err)
}

// Relays returns all relays, by their actors' ids.
func (c *Cluster) Relays(ctx context.Context) ([]Relay, error) {
	return c.relays(ctx, `SELECT `+relayColumns+` FROM relays ORDER BY actor_uri`)
}

// Relay returns the relay whose actor this is, nil when there is none.
func (c *Cluster) Relay(ctx context.Context, actor vocab.ID) (*Relay, error) {
	return oneRelay(c.relays(ctx, `SELECT `+relayColumns+` FROM relays WHERE actor_uri = $1`, actor))
}

// RelayByFollow returns the relay that was sent this Follow, nil when there is none.
func (c *Cluster) RelayByFollow(ctx context.Context, follow vocab.ID) (*Relay, error) {
	return oneRelay(c.relays(ctx, `SELECT `+relayColumns+` FROM relays WHERE follow_uri = $1`, follow))
}

// SetRelayState records what became of a Follow, and tells whether it is the one that this actor was sent last. A Follow
// that was rejected stays so: AddRelay sends another.
func (c *Cluster) SetRelayState(ctx context.Context, actor, follow vocab.ID, state string, now time.Time) (bool, error) {
	tag, err := c.instance.Exec(ctx, `UPDATE relays SET state = $3, updated_at = CASE state WHEN $3 THEN updated_at ELSE $4 END
		WHERE actor_uri = $1 AND follow_uri = $2 AND (state <> 'rejected' OR $3 = 'rejected')`, actor, follow, state, now)
	return tag.RowsAffected() == 1, postgres.Fault("set state of relay", err)
}

// RemoveRelay removes a relay and tells whether there was one.
func (c *Cluster) RemoveRelay(ctx context.Context, actor vocab.ID) (bool, error) {
	tag, err := c.instance.Exec(ctx, `DELETE FROM relays WHERE actor_uri = $1`, actor)
	return tag.RowsAffected() == 1, postgres.Fault("remove relay", err)
}

func (c *Cluster) relays(ctx context.Context, query string, args ...any) ([]Relay, error) {
	rows, err := c.instance.Query(ctx, query, args...)
	if err != nil {
		return nil, postgres.Fault("read relays", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Relay])
	return found, postgres.Fault("read relays", err)
}

func oneRelay(found []Relay, err error) (*Relay, error) {
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// FollowedOn tells whether a user may follow anybody whose id has this origin. Ids sort byte by byte, so that those of an
// origin lie together in the index.
func (c *Cluster) FollowedOn(ctx context.Context, origin string) (follows bool, err error) {
	err = c.instance.QueryRow(ctx, `SELECT EXISTS (SELECT FROM acquaintances JOIN users USING (username)
		WHERE actor_uri >= $1 || '/' AND actor_uri < $1 || '0' AND follows AND state = 'active')`, origin).Scan(&follows)
	return follows, postgres.Fault("read acquaintances", err)
}
