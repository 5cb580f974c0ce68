package instance

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/postgres"
)

const (
	lookupTime    = 20 * time.Second // the time limit of one statement; it is less than the time limit of a request
	lookupsAtOnce = 2                // statements in parallel, so that callers need not wait for one that hangs
)

// tokenLookups finds tokens in batches. While statements run, it collects the digests that
// callers ask for. Then it looks up all these digests with the next statement. That statement
// starts after the callers have asked, so a token that was revoked before a call is not found.
type tokenLookups struct {
	on conns

	mu   sync.Mutex
	next *tokenLookup // the statement that is sent next; nil if no caller waits for it
	busy int          // how many goroutines are in run
}

// tokenLookup is one statement.
type tokenLookup struct {
	digests [][]byte
	done    chan struct{}
	found   map[[32]byte]*Token // set before done is closed
	err     error
}

// find returns the token with this digest, nil when there is none or its user is not active.
func (l *tokenLookups) find(ctx context.Context, digest [32]byte) (*Token, error) {
	if err := l.on.check(ctx); err != nil {
		return nil, err
	}
	asked := l.ask(digest)
	select {
	case <-asked.done:
		return asked.found[digest], asked.err
	case <-ctx.Done():
		return nil, postgres.Fault("find token", ctx.Err())
	}
}

// ask adds a digest to the next statement, and returns that statement.
func (l *tokenLookups) ask(digest [32]byte) *tokenLookup {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &tokenLookup{done: make(chan struct{})}
	}
	l.next.digests = append(l.next.digests, digest[:])
	if l.busy < lookupsAtOnce {
		l.busy++
		go l.run()
	}
	return l.next
}

// run sends statements, one after another, until no caller waits for one.
func (l *tokenLookups) run() {
	for {
		l.mu.Lock()
		asked := l.next
		l.next = nil
		if asked == nil {
			l.busy--
		}
		l.mu.Unlock()
		if asked == nil {
			return
		}
		asked.found, asked.err = l.lookUp(asked.digests)
		close(asked.done)
	}
}

func (l *tokenLookups) lookUp(digests [][]byte) (map[[32]byte]*Token, error) {
	type row struct {
		Digest []byte
		Token
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	// The inner SELECT hides from the planner how many digests there are. Otherwise PostgreSQL
	// plans this statement anew each time, which takes longer than to run it.
	rows, err := postgres.Collect[row](ctx, l.on, "find tokens", `SELECT digest, `+tokenColumns+` FROM tokens
		WHERE digest = ANY(ARRAY(SELECT unnest($1::bytea[]))) AND EXISTS (SELECT FROM users WHERE users.username = tokens.username AND state = 'active')`, digests)
	found := make(map[[32]byte]*Token, len(rows))
	for _, r := range rows {
		found[[32]byte(r.Digest)] = &r.Token
	}
	return found, err
}
