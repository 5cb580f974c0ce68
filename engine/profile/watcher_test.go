package profile

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
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// place is an instance. The test sets its files.
type place struct {
	t       *testing.T
	now     time.Time
	files   map[vocab.Username]registry.Stamp
	holds   map[vocab.Username]string // the content of each user's file, in place of a profile
	broken  map[vocab.Username]bool
	told    map[vocab.Username][]byte // the last announced profile of each active user
	tells   []string
	asked   int
	down    bool // while true, no profile can be announced
	watcher *Watcher
	log     bytes.Buffer
}

func newPlace(t *testing.T, users ...string) *place {
	t.Helper()
	p := &place{t: t, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), files: map[vocab.Username]registry.Stamp{}, holds: map[vocab.Username]string{},
		broken: map[vocab.Username]bool{}, told: map[vocab.Username][]byte{}}
	for _, u := range users {
		p.told[p.user(u)] = nil
	}
	p.restart()
	return p
}

func (p *place) restart() {
	p.watcher = NewWatcher(Deps{Files: p, Users: p, Actors: p, Teller: p, Log: slog.New(slog.NewTextHandler(&p.log, nil)), Now: func() time.Time { return p.now }})
}

func (p *place) user(name string) vocab.Username {
	p.t.Helper()
	u, err := vocab.ParseUsername(name)
	if err != nil {
		p.t.Fatal(err)
	}
	return u
}

func (p *place) Stamps() (map[vocab.Username]registry.Stamp, error) {
	all := map[vocab.Username]registry.Stamp{}
	for u, s := range p.files {
		all[u] = s
	}
	return all, nil
}

func (p *place) Problem(u vocab.Username) error {
	if p.broken[u] {
		return errors.New("broken")
	}
	return nil
}

func (p *place) All(context.Context) (all []instance.User, _ error) {
	for u := range p.told {
		all = append(all, instance.User{Name: u, State: instance.UserActive})
	}
	return all, nil
}

func (p *place) ToldProfiles(_ context.Context, some []vocab.Username) (all []instance.ToldProfile, _ error) {
	p.asked++
	for _, u := range some {
		if digest, active := p.told[u]; active {
			all = append(all, instance.ToldProfile{Name: u, Digest: digest})
		}
	}
	return all, nil
}

func (p *place) SetToldProfile(_ context.Context, u vocab.Username, digest []byte) error {
	p.told[u] = digest
	return nil
}

func (p *place) ProfileDigest(u vocab.Username) []byte { return []byte("profile " + p.holds[u]) }

func (p *place) TellProfile(_ context.Context, u vocab.Username) error {
	if p.down {
		return errors.New("nobody can be told")
	}
	p.tells = append(p.tells, u.String()+" "+p.holds[u])
	p.told[u] = p.ProfileDigest(u)
	return nil
}

// write changes a user's file.
func (p *place) write(name, content string) {
	u := p.user(name)
	p.holds[u], p.files[u] = content, registry.Stamp{Modified: p.now}
}

// pass lets the watcher look around repeatedly for the time d.
func (p *place) pass(d time.Duration) {
	for end := p.now.Add(d); ; p.now = p.now.Add(LookEvery) {
		p.watcher.LookAround(p.t.Context())
		if !p.now.Before(end) {
			return
		}
	}
}

// want checks which profiles the watcher announced to other servers since the last call.
func (p *place) want(tells ...string) {
	p.t.Helper()
	slices.Sort(p.tells)
	if !slices.Equal(p.tells, tells) {
		p.t.Errorf("told %q, want %q", p.tells, tells)
	}
	p.tells = nil
}

func TestAChangeIsToldOnceItHasRested(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "alice", "bob")
	p.write("alice", "one")
	p.pass(time.Minute)
	p.want() // the watcher sees this file for the first time
	asked := p.asked
	p.pass(time.Minute)
	if p.asked != asked {
		t.Error("the database is asked while no file changes")
	}
	p.write("alice", "two")
	p.pass(4 * time.Second)
	p.write("alice", "three")
	p.pass(4 * time.Second)
	p.want()
	p.pass(2 * LookEvery)
	p.want("alice three")
	p.write("alice", "three") // the file is saved again with the same content
	p.write("bob", "the first file")
	p.pass(time.Minute)
	p.want("bob the first file")
	delete(p.files, p.user("bob"))
	p.holds[p.user("bob")] = ""
	p.pass(time.Minute)
	p.want("bob ")
}

func TestAChangeWhileNothingServedIsTold(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "alice", "bob")
	p.write("alice", "one")
	p.pass(time.Minute)
	p.write("alice", "two")
	p.now = p.now.Add(time.Hour)
	p.restart()
	p.pass(0)
	p.want("alice two")
	p.write("alice", "three") // the file may still be edited
	p.restart()
	p.pass(0)
	p.want()
	p.pass(3 * LookEvery)
	p.want("alice three")
}

func TestABrokenFileTellsNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "alice")
	p.write("alice", "one")
	p.pass(time.Minute)
	p.broken[p.user("alice")] = true
	p.write("alice", "")
	p.pass(time.Minute)
	p.restart()
	p.pass(time.Minute)
	p.want()
	delete(p.broken, p.user("alice"))
	p.write("alice", "mended")
	p.pass(time.Minute)
	p.want("alice mended")
}

func TestAChangeThatCouldNotBeToldIsToldLater(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "alice")
	p.pass(time.Minute)
	p.down = true
	p.write("alice", "one")
	p.write("carol", "suspended") // carol is not active
	p.pass(time.Minute)
	p.want()
	if n := strings.Count(p.log.String(), "changed profile not told"); n == 0 || n > 2 {
		t.Errorf("logged %d times: %s", n, p.log.String())
	}
	p.down = false
	p.told[p.user("carol")] = []byte("profile before")
	p.pass(2 * againTime)
	p.want("alice one", "carol suspended")
}

func TestManyChangesAreToldOverSomeTime(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for n := range 3 * maxTold {
		p.told[p.user("u"+strings.Repeat("x", n%20)+string(rune('a'+n/20)))] = []byte("before")
	}
	p.pass(0)
	if len(p.tells) != maxTold {
		t.Errorf("told of %d in one look, want %d", len(p.tells), maxTold)
	}
	p.pass(3 * LookEvery)
	if len(p.tells) != 3*maxTold {
		t.Errorf("told of %d in all, want %d", len(p.tells), 3*maxTold)
	}
}
