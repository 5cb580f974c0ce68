package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Origin returns the origin that every id of this instance begins with, empty when none is remembered.
func (c *Cluster) Origin(ctx context.Context) (string, error) {
	var origin string
	err := c.instance.QueryRow(ctx, `SELECT public_url FROM origin`).Scan(&origin)
	if postgres.IsNoRows(err) {
		return "", nil
	}
	return origin, postgres.Fault("read the origin", err)
}

// SetOrigin remembers the origin in place of old, which is empty for none, and reports whether old still stood there.
func (c *Cluster) SetOrigin(ctx context.Context, old, origin string) (bool, error) {
	query, args := `UPDATE origin SET public_url = $1, set_at = now() WHERE public_url = $2`, []any{origin, old}
	if old == "" {
		query, args = `INSERT INTO origin (public_url) VALUES ($1) ON CONFLICT DO NOTHING`, []any{origin}
	}
	tag, err := c.instance.Exec(ctx, query, args...)
	return tag.RowsAffected() == 1, postgres.Fault("remember the origin", err)
}

// FindSent returns the id of an activity that a user, or the instance to a relay, has made; empty when there is none. It
// reads users' databases of any schema. An error says that some could not be read and the others hold none.
func (c *Cluster) FindSent(ctx context.Context) (vocab.ID, error) {
	var id vocab.ID
	err := c.instance.QueryRow(ctx, `SELECT follow_uri FROM relays LIMIT 1`).Scan(&id)
	if err == nil || !postgres.IsNoRows(err) {
		return id, postgres.Fault("look at the relays", err)
	}
	users, err := c.Users(ctx)
	if err != nil {
		return "", err
	}
	var unread error
	for _, u := range users {
		if u.State == UserCreating || u.State == UserDeleted {
			continue
		}
		id, err := c.findSentBy(ctx, u)
		if err == nil && id != "" {
			return id, nil
		}
		if err != nil && unread == nil {
			unread = fmt.Errorf("look for activities of %s: %w", u.Name, err)
		}
	}
	return "", unread
}

func (c *Cluster) findSentBy(ctx context.Context, u User) (id vocab.ID, err error) {
	conn, err := c.schema.Reach(ctx, u.Database)
	if err != nil {
		return "", err
	}
	defer postgres.Shut(conn)
	err = conn.QueryRow(ctx, `SELECT uri FROM activities WHERE direction = 'outbound' LIMIT 1`).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return id, postgres.Fault("look for activities", err)
}
