package intake

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The reasons why an activity is refused for a user. The sending server tries again later.
var (
	errBacklog = fault.New(fault.Unavailable, "too much of that domain waits for the user; try again later").After(time.Minute)
	errOverdue = fault.New(fault.Unavailable, "the user is catching up with what waits; try again later").After(30 * time.Second)
)

// Backlogs counts the activities that wait in the journal for each user, by the payer that
// caused them. It is safe for concurrent use.
type Backlogs struct {
	one sync.Mutex // held during a recount

	mu         sync.Mutex
	users      map[vocab.Username]*Backlog // a user without waiting activities may have no entry
	recounting bool
	// underway has the activities that are being written to the journal, and the users for which
	// each will wait. During a recount it keeps those that have been written since the start.
	underway map[*instance.Intake][]vocab.Username
	written  []*instance.Intake // during a recount, those of underway that have been written
}

// Backlog counts the activities that wait for one user, and their bytes.
type Backlog struct{ Activities, Bytes *policy.Pool }

func newBacklogs() *Backlogs {
	return &Backlogs{users: map[vocab.Username]*Backlog{}, underway: map[*instance.Intake][]vocab.Username{}}
}

// Of returns a user's backlog.
func (b *Backlogs) Of(u vocab.Username) *Backlog {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(u)
}

func (b *Backlogs) of(u vocab.Username) *Backlog {
	if b.users[u] == nil {
		b.users[u] = &Backlog{policy.Journal.NewPool(), policy.JournalBytes.NewPool()}
	}
	return b.users[u]
}

// take counts an activity that is about to wait, and reports whether there was room for it.
func (b *Backlog) take(payer string, bytes int64) bool {
	if !b.Activities.Take(payer, 1) {
		return false
	}
	if !b.Bytes.Take(payer, bytes) {
		b.Activities.Give(payer, 1)
		return false
	}
	return true
}

// spend counts activities that wait already, even beyond the bound.
func (b *Backlog) spend(payer string, activities, bytes int64) {
	b.Activities.Spend(payer, activities)
	b.Bytes.Spend(payer, bytes)
}

// give subtracts an activity that no longer waits.
func (b *Backlog) give(payer string, bytes int64) {
	b.Activities.Give(payer, 1)
	b.Bytes.Give(payer, bytes)
}

// forget drops the count of a user that has no waiting activities any more.
func (b *Backlogs) forget(u vocab.Username) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.users, u)
}

// expect notes that an activity, which is counted, is about to be written for users.
func (b *Backlogs) expect(in *instance.Intake, users []vocab.Username) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(users) > 0 {
		b.underway[in] = users
	}
}

// settle notes that an activity was written.
func (b *Backlogs) settle(in *instance.Intake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, waits := b.underway[in]; waits && b.recounting {
		b.written = append(b.written, in)
		return
	}
	delete(b.underway, in)
}

// giveBack subtracts an activity from the backlogs of users, because it will not wait after all.
func (b *Backlogs) giveBack(in *instance.Intake) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.underway[in] {
		b.of(u).give(in.Payer, bytesOf(in))
	}
	delete(b.underway, in)
}

// endRows subtracts those rows of a page that are in ended from the backlog of u.
func (b *Backlogs) endRows(u vocab.Username, page []instance.Waiting, ended []instance.IntakeRow) {
	for _, w := range page {
		if slices.Contains(ended, w.IntakeRow) {
			b.Of(u).give(w.Payer, w.Bytes)
		}
	}
}

// recount replaces all counts by those that read returns, which reads the journal. The counts and
// the journal may differ, because an earlier process and administrators write to the journal, too.
// Also, an activity that came twice was counted twice. An activity that is written meanwhile is
// counted, whether or not read has seen it.
func (b *Backlogs) recount(read func() ([]instance.Backlog, error)) error {
	b.one.Lock()
	defer b.one.Unlock()
	b.setRecounting(true)
	defer b.setRecounting(false)
	all, err := read()
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.users)
	for _, n := range all {
		b.of(n.User).spend(n.Payer, n.Activities, n.Bytes)
	}
	for in, users := range b.underway {
		for _, u := range users {
			b.of(u).spend(in.Payer, 1, bytesOf(in))
		}
	}
	return nil
}

// setRecounting begins or ends a recount.
func (b *Backlogs) setRecounting(is bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recounting = is
	for _, in := range b.written {
		delete(b.underway, in)
	}
	b.written = nil
}

// Recount sets the counts of waiting activities to those of the journal.
func (i *Intake) Recount(ctx context.Context) error {
	return i.Backlogs.recount(func() ([]instance.Backlog, error) { return i.Store.Instance.Journal.Backlogs(ctx) })
}

// reserveBacklogs adds an activity to the backlog of each stalled recipient. It removes stalled
// recipients from in.Recipients if their backlog has no room or their drain cannot keep up, and
// returns the reason in the result refusal. The caller holds mu.
func (i *Intake) reserveBacklogs(in *instance.Intake, refused *entry) (refusal error) {
	var reserved []vocab.Username
	defer func() { i.Backlogs.expect(in, reserved) }()
	in.Recipients = slices.DeleteFunc(slices.Clone(in.Recipients), func(u vocab.Username) bool {
		w := i.writer(u)
		if refused == nil && !w.isDeferring() {
			return false
		}
		switch {
		case w.isOverdue():
			refusal = errOverdue
			return true
		case !i.Backlogs.Of(u).take(in.Payer, bytesOf(in)):
			refusal = errBacklog
			return true
		}
		reserved = append(reserved, u)
		return false
	})
	return refusal
}

// bytesOf returns how many bytes of the journal an activity counts as.
func bytesOf(in *instance.Intake) int64 { return int64(len(in.Raw) + len(in.Fetched)) }
