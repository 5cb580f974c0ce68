package registry

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// fixture is a registry with its own clock and log.
type fixture struct {
	*Registry
	dir string
	log bytes.Buffer
	at  time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{dir: t.TempDir(), at: time.Now()}
	f.Registry = New(f.dir, filepath.Join(f.dir, "users"), slog.New(slog.NewTextHandler(&f.log, nil)))
	f.now = func() time.Time { return f.at }
	return f
}

func (f *fixture) serverFile() string { return filepath.Join(f.dir, "registry", "server.json") }

// write overwrites the server's policy file without renaming, as some editors do.
func (f *fixture) write(t *testing.T, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(f.serverFile()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.serverFile(), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	f.wait()
}

// SetServer replaces the whole policy.
func (f *fixture) SetServer(s Server) error {
	return f.UpdateServer(func(now *Server) (bool, error) { *now = s; return true, nil })
}

// SetUser replaces the whole configuration of a user.
func (f *fixture) SetUser(u vocab.Username, c User) error {
	return f.UpdateUser(u, func(now *User) error { *now = c; return nil })
}

// wait sets the clock forward until the registry looks at the files again.
func (f *fixture) wait() { f.at = f.at.Add(lookEvery) }

func (f *fixture) blocked(t *testing.T) string {
	t.Helper()
	s, err := f.Server()
	if err != nil {
		t.Fatalf("Server: %v", err)
	}
	return strings.Join(s.BlockedDomains, " ")
}

func username(t *testing.T, s string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestWithoutFilesTheDefaultsHold(t *testing.T) {
	f := newFixture(t)
	if got := f.blocked(t); got != "" {
		t.Errorf("blocked = %q, want none", got)
	}
	if u := f.User(username(t, "alice")); !reflect.DeepEqual(u, DefaultUser()) {
		t.Errorf("User = %+v, want the defaults", u)
	}
	if len(f.users) != 0 {
		t.Errorf("%d users are kept, want none for those without a file", len(f.users))
	}
	if err := f.Problem(vocab.Username{}); err != nil {
		t.Errorf("Problem = %v, want nil", err)
	}
}

func TestWhatIsSetIsReadBack(t *testing.T) {
	f := newFixture(t)
	f.blocked(t)
	if err := f.SetServer(Server{BlockedDomains: []string{"Bücher.example", "bad.example", "bad.example:443", "127.0.0.1:4321"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := f.blocked(t), "127.0.0.1:4321 bad.example xn--bcher-kva.example"; got != want {
		t.Errorf("blocked = %q, want %q", got, want)
	}
	alice := username(t, "alice")
	c := DefaultUser()
	c.Profile = Profile{Name: "Alice <3", Icon: "https://example.org/a.png", Fields: []Field{{"web", "https://example.org"}}, Aliases: []vocab.ID{}, Mentions: []Mention{}}
	c.FollowPolicy = ApprovalRequired
	if err := f.SetUser(alice, c); err != nil {
		t.Fatal(err)
	}
	if got := f.User(alice); !reflect.DeepEqual(got, c) {
		t.Errorf("User = %+v, want %+v", got, c)
	}
}

func TestFilesAreWrittenForPeopleAndClosedToOthers(t *testing.T) {
	f := newFixture(t)
	alice := username(t, "alice")
	c := DefaultUser()
	c.Profile.Name = "Alice <3"
	if err := f.SetUser(alice, c); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.dir, "users", "alice", "config.json")
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "profile": {
    "name": "Alice <3",
    "summary": "",
    "icon": "",
    "image": "",
    "fields": [],
    "moved_to": "",
    "aliases": [],
    "mentions": []
  },
  "follow_policy": "auto_accept",
  "quotes": "anyone",
  "collections": {
    "followers": "public",
    "following": "public"
  },
  "messaging": {
    "strangers": "requests"
  },
  "permissions": {
    "insecure_dm": {
      "any": [
        "following",
        "friendOf",
        "closeFriendOf"
      ]
    },
    "see_presence": {
      "all": [
        "following",
        "follower"
      ]
    },
    "see_read_receipts": {
      "all": [
        "following",
        "follower"
      ]
    },
    "encrypted_chat": {
      "any": [
        "friendOf",
        "closeFriendOf"
      ]
    }
  },
  "moderation": {
    "muted_actors": [],
    "muted_domains": [],
    "muted_keywords": []
  },
  "discoverable": false,
  "indexable": false,
  "languages": []
}
`
	if string(got) != want {
		t.Errorf("file is %s, want %s", got, want)
	}
	for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestAChangedFileIsSeenWithinASecond(t *testing.T) {
	f := newFixture(t)
	f.write(t, `{"blocked_domains":["a.example"]}`)
	if got := f.blocked(t); got != "a.example" {
		t.Fatalf("blocked = %q, want a.example", got)
	}
	// The new content has the same size as the old one. It may also have the same time,
	// because the file system's clock ticks coarsely.
	f.write(t, `{"blocked_domains":["b.example"]}`)
	if got := f.blocked(t); got != "b.example" {
		t.Errorf("blocked = %q, want b.example", got)
	}
}

func TestTheFileSystemIsAskedSeldom(t *testing.T) {
	f := newFixture(t)
	f.write(t, `{"blocked_domains":["a.example"]}`)
	f.blocked(t)
	f.write(t, `{"blocked_domains":["b.example"]}`)
	f.at = f.at.Add(-time.Millisecond)
	if got := f.blocked(t); got != "a.example" {
		t.Errorf("blocked = %q before a look is due, want a.example", got)
	}
}

func TestABrokenFileKeepsTheLastGoodValue(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(t *testing.T, f *fixture)
	}{
		{"half written", func(t *testing.T, f *fixture) { f.write(t, `{"blocked_domains":["a.ex`) }},
		{"emptied", func(t *testing.T, f *fixture) { f.write(t, "") }},
		{"too large", func(t *testing.T, f *fixture) {
			f.server.limit = 40
			f.write(t, `{"blocked_domains":["a.example"]}`+strings.Repeat(" ", 40))
		}},
		{"a folder", func(t *testing.T, f *fixture) { remake(t, f, func(p string) error { return os.Mkdir(p, 0o700) }) }},
		{"a pipe without a writer", func(t *testing.T, f *fixture) { remake(t, f, func(p string) error { return syscall.Mkfifo(p, 0o600) }) }},
		{"a link in a circle", func(t *testing.T, f *fixture) { remake(t, f, func(p string) error { return os.Symlink(p, p) }) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			const good = `{"blocked_domains":["a.example"]}`
			f.write(t, good)
			f.blocked(t)
			f.at = f.at.Add(settledAfter) // the registry does not trust files that are too young; the steps below must not depend on that
			f.wait()
			f.blocked(t)
			tt.spoil(t, f)
			for range 3 {
				if got := f.blocked(t); got != "a.example" {
					t.Fatalf("blocked = %q, want the last good a.example", got)
				}
				f.wait()
			}
			if err := f.Problem(vocab.Username{}); err == nil || !strings.Contains(err.Error(), f.serverFile()) {
				t.Errorf("Problem = %v, want the file's trouble", err)
			}
			if n := strings.Count(f.log.String(), "configuration file refused"); n != 1 {
				t.Errorf("logged %d times, want once: %s", n, f.log.String())
			}
			if err := os.RemoveAll(f.serverFile()); err != nil {
				t.Fatal(err)
			}
			f.server.limit = maxServerFile
			f.write(t, good)
			if got := f.blocked(t); got != "a.example" || f.Problem(vocab.Username{}) != nil {
				t.Errorf("mended: blocked = %q, Problem = %v, want a.example and nil", got, f.Problem(vocab.Username{}))
			}
		})
	}
}

func remake(t *testing.T, f *fixture, mk func(path string) error) {
	t.Helper()
	if err := os.Remove(f.serverFile()); err != nil {
		t.Fatal(err)
	}
	if err := mk(f.serverFile()); err != nil {
		t.Fatal(err)
	}
	f.wait()
}

func TestAFileThatWasNeverGoodIsAnError(t *testing.T) {
	f := newFixture(t)
	f.write(t, `{"blocked_domains":[]`)
	if _, err := f.Server(); fault.KindOf(err) != fault.Config {
		t.Errorf("Server = %v, want fault.Config", err)
	}
	if f.log.Len() > 0 {
		t.Errorf("logged what who asked was told: %s", f.log.String())
	}
	f.write(t, `{"blocked_domains":[]}`)
	if got := f.blocked(t); got != "" {
		t.Errorf("blocked = %q, want none", got)
	}
}

// A user's file has a mistake. That does not lock the user out, and does not open anything that
// the file may have closed.
func TestAUserWhoseFileWasNeverGoodIsClosed(t *testing.T) {
	f := newFixture(t)
	alice := username(t, "alice")
	c := DefaultUser()
	c.Discoverable, c.Profile.Name = true, "Alice"
	if err := f.SetUser(alice, c); err != nil {
		t.Fatal(err)
	}
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(f.File(alice), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f.wait()
	}
	write(`{"follow_policy":"aproval_required"}`)
	if got := f.User(alice); got.Profile.Name != "Alice" {
		t.Errorf("User = %+v, want the last good one", got)
	}
	f.Registry = New(f.dir, filepath.Join(f.dir, "users"), slog.New(slog.NewTextHandler(&f.log, nil))) // a new registry, as after a restart
	f.now = func() time.Time { return f.at }
	f.log.Reset()
	for range 3 {
		if got := f.User(alice); !reflect.DeepEqual(got, ClosedUser()) {
			t.Errorf("User = %+v, want a closed one", got)
		}
		f.wait()
	}
	if err := f.Problem(alice); fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), "aproval_required") {
		t.Errorf("Problem = %v", err)
	}
	if n := strings.Count(f.log.String(), "configuration file refused: the user is closed to others"); n != 1 || !strings.Contains(f.log.String(), "aproval_required") {
		t.Errorf("logged %d times, want once and why: %s", n, f.log.String())
	}
	if err := f.UpdateUser(alice, func(c *User) error { c.Profile.Name = "other"; return nil }); fault.KindOf(err) != fault.Config {
		t.Errorf("UpdateUser = %v, want the broken file refused", err)
	}
	write(`{"follow_policy":"approval_required","collections":{"followers":"public"}}`)
	if got := f.User(alice); got.Collections.Followers != Public || f.Problem(alice) != nil {
		t.Errorf("mended: User = %+v, Problem = %v", got, f.Problem(alice))
	}
}

func TestAClosedUserTellsNothingThatAFileCanKeepBack(t *testing.T) {
	c := ClosedUser()
	if c.FollowPolicy != ApprovalRequired || c.Collections != (Collections{Owner, Owner}) || c.Messaging.TakesStrangers() == AllowStrangers ||
		c.Quotes != NobodyQuotes || c.Discoverable || c.Indexable || !reflect.DeepEqual(c.Profile, Profile{Fields: []Field{}, Aliases: []vocab.ID{}, Mentions: []Mention{}}) || c.validateUser() != nil {
		t.Errorf("ClosedUser = %+v, which a file could close further", c)
	}
	for name, r := range map[string]Rule{"see_presence": c.Permissions.SeePresence, "see_read_receipts": c.Permissions.SeeReadReceipts, "encrypted_chat": c.Permissions.EncryptedChat} {
		if len(r.Any)+len(r.All) > 0 {
			t.Errorf("ClosedUser lets some meet %s: %+v", name, r)
		}
	}
	// If you add a setting, decide here whether ClosedUser must close it.
	if n := reflect.TypeFor[User]().NumField() + reflect.TypeFor[Messaging]().NumField() + reflect.TypeFor[Collections]().NumField() +
		reflect.TypeFor[Permissions]().NumField(); n != 18 {
		t.Errorf("User and its parts have %d fields: is the new one closed in ClosedUser?", n)
	}
}

func TestABrokenFileThatIsRemovedLeavesNothingBehind(t *testing.T) {
	f := newFixture(t)
	f.write(t, `{"blocked_domains":[]`)
	if _, err := f.Server(); err == nil {
		t.Fatal("a broken file was taken")
	}
	if err := os.Remove(f.serverFile()); err != nil {
		t.Fatal(err)
	}
	f.wait()
	if s, err := f.Server(); err != nil {
		t.Errorf("Server = %v, %v, want the defaults at the first look: there is nothing good to keep", s, err)
	}
}

func TestAFileMustBeGoneTwiceToBeGone(t *testing.T) {
	f := newFixture(t)
	f.write(t, `{"blocked_domains":["a.example"]}`)
	f.blocked(t)
	if err := os.Remove(f.serverFile()); err != nil {
		t.Fatal(err)
	}
	f.wait()
	if got := f.blocked(t); got != "a.example" {
		t.Errorf("blocked = %q at the first look, want a.example: an editor may be at work", got)
	}
	f.wait()
	if got := f.blocked(t); got != "" {
		t.Errorf("blocked = %q at the second look, want none", got)
	}
}

func TestAWriteThatIsKilledLeavesTheOldFile(t *testing.T) {
	f := newFixture(t)
	if err := f.SetServer(Server{BlockedDomains: []string{"old.example"}}); err != nil {
		t.Fatal(err)
	}
	temp, err := prepareFile(f.serverFile(), []byte(`{"blocked_domains":["new.example"]}`)) // a process was killed before the rename
	if err != nil {
		t.Fatal(err)
	}
	f.wait()
	if got := f.blocked(t); got != "old.example" {
		t.Errorf("blocked = %q, want old.example", got)
	}
	long := time.Now().Add(-2 * abandonedAfter)
	if err := os.Chtimes(temp, long, long); err != nil {
		t.Fatal(err)
	}
	if err := f.SetServer(Server{BlockedDomains: []string{"new.example"}}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Dir(temp))
	if err != nil || len(left) != 1 {
		t.Errorf("folder holds %v, %v, want the policy alone", left, err)
	}
}

func TestReadersSeeWholePoliciesWhileTheyAreWritten(t *testing.T) {
	f := newFixture(t)
	policy := func(i int) Server {
		var s Server
		for j := range 100 {
			s.BlockedDomains = append(s.BlockedDomains, fmt.Sprintf("p%d-%02d.example", i, j))
		}
		return s
	}
	if err := f.SetServer(policy(0)); err != nil {
		t.Fatal(err)
	}
	alice := username(t, "alice")
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			// Each reader stands for another process, which sees only the files.
			r := New(f.dir, filepath.Join(f.dir, "users"), slog.New(slog.DiscardHandler))
			var ticks time.Duration
			start := time.Now()
			r.now = func() time.Time { ticks += lookEvery; return start.Add(ticks) }
			for {
				select {
				case <-stop:
					return
				default:
				}
				s, err := r.Server()
				if err != nil || len(s.BlockedDomains) != 100 || s.BlockedDomains[0][:3] != s.BlockedDomains[99][:3] {
					t.Errorf("Server = %v, %v, want 100 domains of one policy", s, err)
					return
				}
				if u := r.User(alice); u.Profile.Name != u.Profile.Summary {
					t.Errorf("User = %v, want name and summary of one write", u)
					return
				}
			}
		})
	}
	for i := range 60 {
		c := DefaultUser()
		c.Profile.Name, c.Profile.Summary = fmt.Sprint(i), fmt.Sprint(i)
		if err := f.SetServer(policy(i % 10)); err != nil {
			t.Fatal(err)
		}
		if err := f.SetUser(alice, c); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	readers.Wait()
}

func TestOneRegistryIsSharedByManyGoroutines(t *testing.T) {
	f := newFixture(t)
	f.now = time.Now
	bob := username(t, "bob")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				if _, err := f.Server(); err != nil {
					t.Error(err)
				}
				f.User(bob)
				if i == 0 {
					if err := f.SetUser(bob, DefaultUser()); err != nil {
						t.Error(err)
					}
				}
				if err := f.Problem(vocab.Username{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestRootLeavesFilesToTheFoldersOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	f := newFixture(t)
	if err := os.Chown(f.dir, 4242, 4343); err != nil {
		t.Fatal(err)
	}
	if err := f.SetServer(Server{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{f.serverFile(), filepath.Dir(f.serverFile())} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 4242 || s.Gid != 4343 {
			t.Errorf("%s belongs to %d:%d, want 4242:4343", p, s.Uid, s.Gid)
		}
	}
}

func TestAPolicyHasActorsAndComments(t *testing.T) {
	f := newFixture(t)
	f.write(t, `{"blocked_domains": ["bad.example"], "suspended_actors": ["https://GOOD.example:443/users/bob"],
		"comments": {"Bad.example": "spam", "https://good.example/users/bob": "rude"}}`)
	s, err := f.Server()
	if err != nil {
		t.Fatal(err)
	}
	want := Server{BlockedDomains: []string{"bad.example"}, AllowedDomains: []string{}, SuspendedActors: []vocab.ID{"https://good.example/users/bob"},
		Comments: map[string]string{"bad.example": "spam", "https://good.example/users/bob": "rude"}}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("Server = %+v, want %+v", s, want)
	}
	for _, broken := range []string{
		`{"suspended_actors": ["@bob@good.example"]}`, `{"suspended_actors": ["good.example/users/bob"]}`,
		`{"comments": []}`, `{"comments": {"bad.example": 1}}`, `{"comments": {"bad.example": "a", "bad.example": "b"}}`,
		`{"comments": {"no domain": "a"}}`, `{"comments": {"bad.example": "\u0007"}}`, `{"comments": {"bad.example": "` + strings.Repeat("ä", MaxComment+1) + `"}}`,
	} {
		if _, err := decodeServer([]byte(broken)); fault.KindOf(err) != fault.Config {
			t.Errorf("%.60s: %v, want fault.Config", broken, err)
		}
	}
}

func TestUpdatesOfSeveralProcessesAreAllThere(t *testing.T) {
	f := newFixture(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			r := New(f.dir, filepath.Join(f.dir, "users"), slog.New(slog.DiscardHandler)) // this registry stands for another process, which sees only the files
			for j := range 10 {
				if err := r.UpdateServer(func(s *Server) (bool, error) {
					s.BlockedDomains = append(s.BlockedDomains, fmt.Sprintf("h%d-%d.example", i, j))
					return true, nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if s, err := f.Server(); err != nil || len(s.BlockedDomains) != 80 {
		t.Errorf("%d domains, %v, want 80", len(s.BlockedDomains), err)
	}
}

func TestAnUpdateThatFailsChangesNothing(t *testing.T) {
	f := newFixture(t)
	const good = `{"blocked_domains":["a.example"]}`
	f.write(t, good)
	before, err := f.Server()
	if err != nil {
		t.Fatal(err)
	}
	refusal := fault.New(fault.Invalid, "no")
	f.server.limit = 200
	for name, change := range map[string]func(*Server) (bool, error){
		"refused": func(s *Server) (bool, error) { s.BlockedDomains[0] = "b.example"; return true, refusal },
		"no domain": func(s *Server) (bool, error) {
			s.BlockedDomains = append(s.BlockedDomains, "no domain")
			return true, nil
		},
		"over limit": func(s *Server) (bool, error) { s.Comments["a.example"] = strings.Repeat("x", 200); return true, nil },
		"not meant":  func(s *Server) (bool, error) { s.BlockedDomains[0] = "b.example"; return false, nil },
	} {
		if err := f.UpdateServer(change); (err == nil) != (name == "not meant") {
			t.Errorf("%s: UpdateServer = %v", name, err)
		}
		written, err := os.ReadFile(f.serverFile())
		if err != nil || string(written) != good || before.BlockedDomains[0] != "a.example" {
			t.Errorf("%s: the file is %s, %v, and the policy %v, want both as before", name, written, err, before)
		}
	}
	f.server.limit = maxServerFile
	f.write(t, `{"blocked_domains":["a.ex`)
	if err := f.UpdateServer(func(*Server) (bool, error) { return true, nil }); fault.KindOf(err) != fault.Config {
		t.Errorf("UpdateServer of a broken file = %v, want fault.Config", err)
	}
}

func TestWhoChangesThePolicyIsNotToldOfIt(t *testing.T) {
	f := newFixture(t)
	f.write(t, `{"blocked_domains":["a.example"]}`)
	f.blocked(t)
	if err := f.SetServer(Server{BlockedDomains: []string{"b.example"}}); err != nil {
		t.Fatal(err)
	}
	if f.log.Len() > 0 {
		t.Errorf("logged its own change: %s", f.log.String())
	}
	f.write(t, `{"blocked_domains":["c.example"]}`)
	if f.blocked(t); !strings.Contains(f.log.String(), "configuration file changed") {
		t.Errorf("logged %q of somebody else's change", f.log.String())
	}
}
