package pool

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lightweb/lightweb/db/postgres"
)

const (
	brokenTime = time.Second // the time before an unusable database is tried again, give or take a fifth
	maxBroken  = 1024        // how many unusable databases are remembered
)

// broken remembers the databases that cannot be used because they are missing, because a
// migration of them was interrupted, or because their schema version is another one or cannot be
// read. If they were not remembered, the work that waits for such a database would try to connect
// thousands of times a second.
type broken map[string]failure

type failure struct {
	err   error
	since time.Time
	until time.Time
}

// failureOf returns why a database cannot be used, nil when it may be tried.
func (b broken) failureOf(database string) error {
	f, ok := b[database]
	if !ok || !time.Now().Before(f.until) {
		return nil
	}
	return fmt.Errorf("known since %s: %w", f.since.UTC().Format(time.RFC3339), f.err)
}

// noteResult stores the result of a try to connect to a database. The parameter err is nil for
// success.
func (b broken) noteResult(database string, err error) {
	if err == nil {
		delete(b, database)
		return
	}
	if !postgres.IsUserFault(err) {
		return // the error says nothing about this database
	}
	now := time.Now()
	f, again := b[database]
	if !again {
		if f.since = now; len(b) >= maxBroken {
			b.forgetOne()
		}
	}
	f.err, f.until = err, now.Add(jittered(brokenTime))
	b[database] = f
}

// Retry forgets that a database could not be used. The next call of Acquire tries the database
// without delay.
func (c *Pool) Retry(database string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.broken, database)
}

// forgetOne removes any entry, to make room for another database.
func (b broken) forgetOne() {
	// Any entry will do, because its removal only lets its database be tried once more.
	for database := range b {
		delete(b, database)
		return
	}
}

// jittered returns a random duration that differs from d by at most a fifth. So connections that
// were opened together do not end at the same time, and unusable databases are not tried again at
// the same time.
func jittered(d time.Duration) time.Duration {
	return d*4/5 + rand.N(d*2/5)
}
