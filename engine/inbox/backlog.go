package inbox

import (
	"context"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// errBacklog refuses an activity for a user with too much of its sender's domain waiting. Its server sends it again.
var errBacklog = fault.New(fault.Unavailable, "no more can wait for the user now").After(time.Minute)

// backlog is how much waits in the journal for one user, by who caused it.
type backlog struct{ activities, bytes *policy.Pool }

// backlog returns a user's. The caller holds mu.
func (w *writers) backlog(u vocab.Username) *backlog {
	b := w.backlogs[u]
	if b == nil {
		b = &backlog{policy.Journal.NewPool(), policy.JournalBytes.NewPool()}
		w.backlogs[u] = b
	}
	return b
}

// take counts an activity that is about to wait, and reports whether it may.
func (b *backlog) take(payer string, bytes int64) bool {
	if !b.activities.Take(payer, 1) {
		return false
	}
	if !b.bytes.Take(payer, bytes) {
		b.activities.Give(payer, 1)
		return false
	}
	return true
}

// spend counts activities that wait already.
func (b *backlog) spend(payer string, activities, bytes int64) {
	b.activities.Spend(payer, activities)
	b.bytes.Spend(payer, bytes)
}

// give says that an activity waits no more.
func (b *backlog) give(payer string, bytes int64) {
	b.activities.Give(payer, 1)
	b.bytes.Give(payer, bytes)
}

// reserve counts an activity for those of its recipients who are parked, or about to be, and takes those out that it may
// not wait: their part is refused. The caller holds mu.
func (w *writers) reserve(in *db.Intake, refused *entry) (reserved []vocab.Username) {
	in.Recipients = slices.DeleteFunc(slices.Clone(in.Recipients), func(u vocab.Username) bool {
		if w.parked[u] == nil && refused == nil {
			return false
		}
		if !w.backlog(u).take(in.Payer, bytesOf(in)) {
			return true
		}
		reserved = append(reserved, u)
		return false
	})
	return reserved
}

// unreserve gives back what reserve has taken. The caller holds mu.
func (w *writers) unreserve(in *db.Intake, users []vocab.Username) {
	for _, u := range users {
		w.backlog(u).give(in.Payer, bytesOf(in))
	}
}

// bytesOf is what an activity counts in the journal.
func bytesOf(in *db.Intake) int64 { return int64(len(in.Raw) + len(in.Fetched)) }

// shorten says that these activities of a page wait for u no more.
func (w *writers) shorten(u vocab.Username, page []db.Waiting, ended []db.IntakeRow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, waiting := range page {
		if slices.Contains(ended, waiting.IntakeRow) {
			w.backlog(u).give(waiting.Payer, waiting.Bytes)
		}
	}
}

// recount reads from the journal what waits: an earlier process and administrators have their part in it, and what came twice
// was counted twice. What is on its way meanwhile counts from the next time on.
func (w *writers) recount(ctx context.Context) error {
	all, err := w.inbox.Store.Backlogs(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.backlogs)
	for _, b := range all {
		w.backlog(b.User).spend(b.Payer, b.Activities, b.Bytes)
	}
	return nil
}
