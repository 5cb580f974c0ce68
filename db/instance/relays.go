package instance

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The styles of relays (FEP-ae0c). They differ in the object of the Follow by which this server
// subscribes, and in the form in which posts are sent to the relay.
const (
	RelayMastodon = "mastodon" // the Follow's object is the public collection; activities are sent as they are
	RelayLitePub  = "litepub"  // the Follow's object is the relay's actor; the instance actor sends an Announce
)

// The states of a relay. They are the states of the Follow that the instance actor has sent to
// the relay.
const (
	RelayPending  = "pending"
	RelayAccepted = "accepted"
	RelayRejected = "rejected"
)

// Relays are the relays to which this server subscribes.
type Relays struct{ on conns }

// Relay is a server that passes public posts on to all its subscribers.
type Relay struct {
	Actor     vocab.ID  `db:"actor_uri" json:"actor"`
	Inbox     vocab.ID  `json:"inbox"`
	Style     string    `json:"style"`
	State     string    `json:"state"`
	Follow    vocab.ID  `db:"follow_uri" json:"follow"` // the Follow by which this server subscribes
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

const relayColumns = `actor_uri, inbox, style, state, follow_uri, created_at, updated_at`

// Save stores a relay. It replaces a stored relay with the same actor.
func (s Relays) Save(ctx context.Context, r Relay, now time.Time) error {
	_, err := s.on.Exec(ctx, `INSERT INTO relays (actor_uri, inbox, style, state, follow_uri, created_at, updated_at) VALUES (@actor, @inbox, @style, @state, @follow, @now, @now)
		ON CONFLICT (actor_uri) DO UPDATE SET inbox = excluded.inbox, style = excluded.style, state = excluded.state, follow_uri = excluded.follow_uri, updated_at = excluded.updated_at`,
		pgx.NamedArgs{"actor": r.Actor, "inbox": r.Inbox, "style": r.Style, "state": r.State, "follow": r.Follow, "now": now})
	return postgres.Fault("store relay", err)
}

// All returns all relays, sorted by their actors' ids.
func (s Relays) All(ctx context.Context) ([]Relay, error) {
	return postgres.Collect[Relay](ctx, s.on, "read relays", `SELECT `+relayColumns+` FROM relays ORDER BY actor_uri`)
}

// Find returns the relay with this actor, nil when there is none.
func (s Relays) Find(ctx context.Context, actor vocab.ID) (*Relay, error) {
	return postgres.First[Relay](ctx, s.on, "read relays", `SELECT `+relayColumns+` FROM relays WHERE actor_uri = $1`, actor)
}

// FindFollow returns the id of any Follow that was sent to a relay, empty when there is none.
func (s Relays) FindFollow(ctx context.Context) (vocab.ID, error) {
	var follow vocab.ID
	err := s.on.QueryRow(ctx, `SELECT follow_uri FROM relays LIMIT 1`).Scan(&follow)
	if postgres.IsNoRows(err) {
		return "", nil
	}
	return follow, postgres.Fault("read relays", err)
}

// SetState stores the relay's answer to a Follow, and reports whether it did. It stores nothing
// if a later Follow was sent to the relay. It also stores nothing if the relay rejected this
// Follow before and accepts it now, because a new subscription sends a new Follow.
func (s Relays) SetState(ctx context.Context, actor, follow vocab.ID, state string, now time.Time) (bool, error) {
	tag, err := s.on.Exec(ctx, `UPDATE relays SET state = @state, updated_at = CASE state WHEN @state THEN updated_at ELSE @now END
		WHERE actor_uri = @actor AND follow_uri = @follow AND (state <> 'rejected' OR @state = 'rejected')`,
		pgx.NamedArgs{"actor": actor, "follow": follow, "state": state, "now": now})
	return tag.RowsAffected() == 1, postgres.Fault("set state of relay", err)
}

// Remove removes a relay and reports whether there was one.
func (s Relays) Remove(ctx context.Context, actor vocab.ID) (bool, error) {
	tag, err := s.on.Exec(ctx, `DELETE FROM relays WHERE actor_uri = $1`, actor)
	return tag.RowsAffected() == 1, postgres.Fault("remove relay", err)
}
