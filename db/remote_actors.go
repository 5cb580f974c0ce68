package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/engine/vocab"
)

// RemoteActor is an actor of another server as the instance remembers it.
type RemoteActor struct {
	Actor     *vocab.Actor
	Handle    string    // user@host, once WebFinger has confirmed it
	FetchedAt time.Time // or when it was last known to be gone
	Gone      bool      // its server, or it itself, said that it was deleted
}

const remoteActorColumns = `a.raw, coalesce(a.handle, ''), coalesce(a.gone_at, a.fetched_at), a.gone_at IS NOT NULL`

// RemoteActor returns what is remembered of an actor, nil when nothing is.
func (c *Cluster) RemoteActor(ctx context.Context, id vocab.ID) (*RemoteActor, error) {
	return c.remoteActor(ctx, `SELECT `+remoteActorColumns+` FROM actors a WHERE a.uri = $1`, id)
}

// RemoteActorByKey returns the actor that lists the key, nil when none is remembered.
func (c *Cluster) RemoteActorByKey(ctx context.Context, key vocab.ID) (*RemoteActor, error) {
	return c.remoteActor(ctx, `SELECT `+remoteActorColumns+` FROM actor_keys k JOIN actors a ON a.uri = k.actor_uri WHERE k.key_id = $1`, key)
}

// RemoteActorByHandle returns the actor whose handle user@host was confirmed, nil when none is remembered.
func (c *Cluster) RemoteActorByHandle(ctx context.Context, handle string) (*RemoteActor, error) {
	return c.remoteActor(ctx, `SELECT `+remoteActorColumns+` FROM actors a WHERE a.handle = $1 ORDER BY a.fetched_at DESC LIMIT 1`, handle)
}

func (c *Cluster) remoteActor(ctx context.Context, query string, arg any) (*RemoteActor, error) {
	var raw []byte
	var r RemoteActor
	err := c.instance.QueryRow(ctx, query, arg).Scan(&raw, &r.Handle, &r.FetchedAt, &r.Gone)
	if isNoRows(err) {
		return nil, nil
	}
	if err != nil {
		return nil, storeFault("read remote actor", err)
	}
	if r.Actor, err = vocab.ParseActor(raw); err != nil {
		return nil, fmt.Errorf("read remote actor: %w", err)
	}
	return &r, nil
}

// SaveRemoteActor remembers an actor as its own server describes it, and which keys it lists. A key of another server is
// nobody's to list, and one that another actor lists already stays that actor's.
func (c *Cluster) SaveRemoteActor(ctx context.Context, r RemoteActor) error {
	keys := make([]string, 0, len(r.Actor.Keys))
	for _, k := range r.Actor.Keys {
		if k.ID.SameOrigin(r.Actor.ID) {
			keys = append(keys, string(k.ID))
		}
	}
	err := pgx.BeginFunc(ctx, c.instance, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO actors (uri, host, handle, raw, fetched_at) VALUES ($1, $2, nullif($3, ''), $4, $5)
			ON CONFLICT (uri) DO UPDATE SET raw = excluded.raw, fetched_at = excluded.fetched_at, gone_at = NULL,
				handle = coalesce(excluded.handle, actors.handle)`,
			r.Actor.ID, r.Actor.ID.Host(), r.Handle, r.Actor.Raw, r.FetchedAt)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM actor_keys WHERE actor_uri = $1 AND key_id <> ALL($2)`, r.Actor.ID, keys); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO actor_keys (key_id, actor_uri) SELECT DISTINCT k, $1 FROM unnest($2::text[]) k ORDER BY k
			ON CONFLICT (key_id) DO NOTHING`, r.Actor.ID, keys)
		return err
	})
	return storeFault("save remote actor", err)
}

// MarkActorGone remembers that the actor's server, or it itself, said that it was deleted. Its keys verify nothing any
// more.
func (c *Cluster) MarkActorGone(ctx context.Context, id vocab.ID, now time.Time) error {
	_, err := c.instance.Exec(ctx, `UPDATE actors SET gone_at = $2 WHERE uri = $1`, id, now)
	return storeFault("mark actor gone", err)
}

// MarkActorStale remembers that the actor has changed since it was fetched, whenever that was.
func (c *Cluster) MarkActorStale(ctx context.Context, id vocab.ID) error {
	_, err := c.instance.Exec(ctx, `UPDATE actors SET fetched_at = 'epoch' WHERE uri = $1`, id)
	return storeFault("mark actor stale", err)
}
