package deletion

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// place is an instance with one user whose deletion has begun.
type place struct {
	now     time.Time
	since   time.Time
	cut     bool // whether the removal of the user has begun
	owed    int
	away    error // the error that the user's database returns
	stuck   error // the error that the removal of the user returns
	steps   []string
	log     bytes.Buffer
	watcher *Watcher
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	p.since = p.now
	p.restart()
	return p
}

func (p *place) restart() {
	p.watcher = NewWatcher(Deps{Users: p, Teller: p, Holder: p, Log: slog.New(slog.NewTextHandler(&p.log, nil)), Now: func() time.Time { return p.now }})
}

func (p *place) ListDeletions(context.Context) ([]instance.Deletion, error) {
	if slices.Contains(p.steps, "removed") {
		return nil, nil
	}
	u, err := vocab.ParseUsername("alice")
	return []instance.Deletion{{User: u, Since: p.since, Removing: p.cut}}, err
}

func (p *place) TellDeletion(context.Context, vocab.Username) error {
	if p.away == nil {
		p.steps = append(p.steps, "told")
	}
	return p.away
}

func (p *place) CountOwed(context.Context, vocab.Username) (int, error) {
	p.steps = append(p.steps, "counted")
	return p.owed, p.away
}

func (p *place) RemoveUser(context.Context, vocab.Username) error {
	if p.stuck == nil {
		p.steps = append(p.steps, "removed")
	}
	return p.stuck
}

// look sets the clock forward and calls LookAround. It fails the test unless all steps so far are
// those in want.
func (p *place) look(t *testing.T, after time.Duration, want ...string) {
	t.Helper()
	p.now = p.now.Add(after)
	p.watcher.LookAround(t.Context())
	if !slices.Equal(p.steps, want) {
		t.Errorf("the steps are %q, want %q", p.steps, want)
	}
}

func TestAUserIsRemovedWhenEverybodyHasHeardOfIt(t *testing.T) {
	p := newPlace(t)
	p.owed = 1
	p.look(t, 0, "told")
	p.look(t, LookEvery, "told", "counted")
	p.look(t, LookEvery, "told", "counted")
	p.owed = 0
	p.look(t, againTime, "told", "counted", "counted", "removed")
	p.look(t, againTime, "told", "counted", "counted", "removed")
	if len(p.watcher.told) > 0 || len(p.watcher.due) > 0 {
		t.Errorf("of a deleted user there is %v and %v in memory, want nothing", p.watcher.told, p.watcher.due)
	}
	if !strings.Contains(p.log.String(), "user deleted") {
		t.Errorf("the log is %q", &p.log)
	}
}

func TestADeletionGoesOnAfterAFault(t *testing.T) {
	p := newPlace(t)
	p.away = errors.New("the database is away")
	p.look(t, 0)
	p.away = nil
	p.look(t, LookEvery)
	p.stuck = errors.New("a file cannot be removed")
	p.look(t, againTime, "told")
	p.look(t, LookEvery, "told", "counted")
	p.cut, p.away = true, errors.New("the database was removed")
	p.look(t, againTime, "told", "counted")
	p.restart()
	p.stuck = nil
	p.look(t, againTime, "told", "counted", "removed")
	if n := strings.Count(p.log.String(), "user not deleted yet"); n != 3 {
		t.Errorf("the log tells of %d faults, want 3: %s", n, &p.log)
	}
}

func TestADeletionEndsThoughSomebodyNeverHearsOfIt(t *testing.T) {
	p := newPlace(t)
	p.owed = 1
	p.look(t, 0, "told")
	p.restart()
	p.look(t, MostWait-time.Second, "told", "told")
	p.look(t, time.Second, "told", "told", "removed")

	lost := newPlace(t)
	lost.away = errors.New("there is no such database")
	lost.look(t, MostWait, "removed")
}
