package user

import (
	"context"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/pool"
)

// The search for the outcome of a commit whose connection was lost.
const (
	firstLook   = time.Second      // the wait before the first look; it doubles with each look
	longestWait = time.Minute      // between two looks
	lookTime    = 10 * time.Second // limits one look
	lastLook    = time.Hour        // when the search ends
)

// lateCommits tells subscribers again of commits whose connection was lost. The server may hang
// during such a commit, and commit long after the subscribers were told that the outcome is
// unknown. They would have read the database too early, and would not learn of the events.
type lateCommits struct {
	ctx context.Context // ends with Close
	end context.CancelFunc

	mu      sync.Mutex // no goroutine starts while or after Close waits
	running sync.WaitGroup
}

func newLateCommits() *lateCommits {
	ctx, end := context.WithCancel(context.Background())
	return &lateCommits{ctx: ctx, end: end}
}

// Close ends the search for the outcomes of commits whose connections were lost. It is called
// before the pool is closed.
func (d *Databases) Close() {
	d.late.mu.Lock()
	d.late.end()
	d.late.mu.Unlock()
	d.late.running.Wait()
}

// tellLater tells subscribers of a commit again, once its backend has ended the transaction. The
// number of goroutines is limited by the server's limit of connections, because a backend that
// hangs occupies one.
func (d *Databases) tellLater(c Commit) {
	d.late.mu.Lock()
	defer d.late.mu.Unlock()
	if d.late.ctx.Err() != nil || d.subscribers.list.Load() == nil {
		return
	}
	d.late.running.Go(func() {
		if d.awaitEnd(d.late.ctx, c) {
			d.subscribers.tell(d.late.ctx, c)
		}
	})
}

// awaitEnd waits until the backend of a commit has ended the transaction. It returns false if ctx
// ends first. While the database does not answer, it keeps looking, because the commit may show
// once it answers. After lastLook it does not wait any more.
func (d *Databases) awaitEnd(ctx context.Context, c Commit) bool {
	var ended bool
	var err error
	for wait, waited := firstLook, time.Duration(0); waited < lastLook; wait = min(2*wait, longestWait) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(wait):
		}
		if ended, err = d.hasEnded(ctx, c); ended && err == nil {
			return true
		}
		waited += wait
	}
	if err == nil {
		d.subscribers.log.WarnContext(ctx, "commit of unknown outcome has not ended", "user", c.User, "hint", "see pg_stat_activity for a session that hangs in COMMIT")
	}
	return true
}

// hasEnded reports whether the backend of a commit is in no transaction any more, or is gone.
func (d *Databases) hasEnded(ctx context.Context, c Commit) (ended bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	err = d.As(pool.Work).Look(ctx, c.User, func(ctx context.Context, t *Tx) error {
		return t.row(ctx, "look for a backend", `SELECT NOT EXISTS (SELECT FROM pg_stat_activity
			WHERE datname = current_database() AND pid = $1 AND state IS DISTINCT FROM 'idle')`, []any{int64(c.backend)}, &ended)
	})
	return ended, err
}
