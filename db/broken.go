package db

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

const (
	brokenTime = time.Second // for which a database that cannot be used is not tried again, give or take a fifth
	maxBroken  = 1024        // databases of which that is remembered
)

// broken remembers the databases that cannot be used, missing, dirty or of another schema, so that work that waits for
// one does not connect to it thousands of times a second.
type broken map[string]failure

type failure struct {
	err   error
	since time.Time
	until time.Time
}

// known returns why a database cannot be used, nil when that has to be tried.
func (b broken) known(database string) error {
	f, ok := b[database]
	if !ok || !time.Now().Before(f.until) {
		return nil
	}
	return fmt.Errorf("known since %s: %w", f.since.UTC().Format(time.RFC3339), f.err)
}

// note remembers how the last try of a database ended.
func (b broken) note(database string, err error) {
	if err == nil {
		delete(b, database)
		return
	}
	if f := fault.Of(err); f == nil || f.Code != codeUser {
		return // it says nothing about this database
	}
	now := time.Now()
	f, again := b[database]
	if !again {
		if f.since = now; len(b) >= maxBroken {
			b.forget()
		}
	}
	f.err, f.until = err, now.Add(jittered(brokenTime))
	b[database] = f
}

// retry lets a database be tried again at once that could not be used.
func (c *conns) retry(database string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.broken, database)
}

// forget makes room for another database.
func (b broken) forget() {
	for database := range b { // whichever comes: it is only tried once more
		delete(b, database)
		return
	}
}

// jittered returns d, give or take a fifth: what began together shall not end together.
func jittered(d time.Duration) time.Duration {
	return d*4/5 + rand.N(d*2/5)
}
