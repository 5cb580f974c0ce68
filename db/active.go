package db

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// believed is how long a user that was active is taken to be so: other processes suspend users, too.
const believed = time.Second

// active remembers who was active just now, so that inbound work does not ask for every request. It never remembers that
// somebody was not: a new user is found at once.
type active struct {
	mu    sync.Mutex
	until map[vocab.Username]time.Time
}

// split tells those of the users who were active just now from those who must be asked for.
func (a *active) split(users []vocab.Username, now time.Time) (known, ask []vocab.Username) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, u := range users {
		if now.Before(a.until[u]) {
			known = append(known, u)
		} else {
			ask = append(ask, u)
		}
	}
	return known, ask
}

func (a *active) add(users []vocab.Username, until time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.until == nil {
		a.until = map[vocab.Username]time.Time{}
	}
	for _, u := range users {
		a.until[u] = until
	}
}

func (a *active) forget(u vocab.Username) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.until, u)
}

// ActiveUsers returns those of the users who are active, or were within the last second, by name.
func (c *Cluster) ActiveUsers(ctx context.Context, users []vocab.Username) ([]vocab.Username, error) {
	now := time.Now()
	there, ask := c.active.split(users, now)
	if len(ask) > 0 {
		rows, err := c.instance.Query(ctx, `SELECT username FROM users WHERE username = ANY($1) AND state = 'active'`, names(ask))
		if err != nil {
			return nil, postgres.Fault("read users", err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[vocab.Username])
		if err != nil {
			return nil, postgres.Fault("read users", err)
		}
		c.active.add(found, now.Add(believed))
		there = append(there, found...)
	}
	slices.SortFunc(there, func(a, b vocab.Username) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(there), nil
}
