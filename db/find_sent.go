package db

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// FindSent returns the id of any activity that a user has made, or that the instance has made for
// a relay. It returns an empty id if there is none. It also reads users' databases with other
// schema versions. If a user's database cannot be read, FindSent goes on with the others, and
// returns the error only if it finds no activity in the others.
func (c *Cluster) FindSent(ctx context.Context) (vocab.ID, error) {
	id, err := c.Instance.Relays.FindFollow(ctx)
	if err != nil || id != "" {
		return id, err
	}
	users, err := c.Instance.Users.All(ctx)
	if err != nil {
		return "", err
	}
	var unread error
	for _, u := range users {
		if u.State == instance.UserCreating || u.State == instance.UserDeleted {
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

func (c *Cluster) findSentBy(ctx context.Context, u instance.User) (id vocab.ID, err error) {
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
