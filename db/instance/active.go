package instance

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/postgres"
	"github.com/lightweb/lightweb/engine/vocab"
)

// believed is the time for which a user who was found active counts as active without a query. It
// is short, because other processes may suspend users.
const believed = time.Second

// active remembers the users that were recently found active, so that the work on a request from
// another server mostly needs no query. It never remembers that a user was not active, so that a
// new user is found immediately.
type active struct {
	mu    sync.Mutex
	until map[vocab.Username]time.Time
}

// split divides users into those remembered as active (known), and those to query for (ask).
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

// Active returns those of the users that are active, or were active within the last second, sorted
// by name.
func (s Users) Active(ctx context.Context, users []vocab.Username) ([]vocab.Username, error) {
	now := time.Now()
	there, ask := s.active.split(users, now)
	if len(ask) > 0 {
		found, err := postgres.CollectColumn[vocab.Username](ctx, s.on, "read users", `SELECT username FROM users WHERE username = ANY($1) AND state = 'active'`, names(ask))
		if err != nil {
			return nil, err
		}
		s.active.add(found, now.Add(believed))
		there = append(there, found...)
	}
	slices.SortFunc(there, func(a, b vocab.Username) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(there), nil
}
