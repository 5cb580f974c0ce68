package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// restored holds the JSON that restore --json writes.
type restored struct {
	Users, Rows, Fenced int
	Keys                bool
	Kept                []string
	Without             []string `json:"without_database"`
	PutAside            string   `json:"put_aside"`
	Refusal             string
	DryRun              bool `json:"dry_run"`
}

// An instance is backed up while it serves. Then it is lost. It is restored from the backup, to
// the same and to another PostgreSQL server, and federates again.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	a, peer := enginetest.StartTwo(t)
	s := newLost(t, a, peer)
	t.Run("beside an engine that serves", s.besideServe)
	t.Run("on a server that is configured", s.configured)
	t.Run("of an instance that is busy", s.busy)
	t.Run("killed while it is made", s.killedBackup)
	a.Stop(t)
	t.Run("killed at any moment", s.killed)
	t.Run("what is not taken", s.refusals)
	t.Run("the instance lives on", s.livesOn)
	t.Run("one user", s.oneUser)
}

// lost is an instance with users, followers and a delivery that waits. The field file is the path
// of its backup.
type lost struct {
	test              *testing.T // the test of all parts: later parts use an instance that an earlier part restored
	from, peer        *enginetest.Instance
	alice, bob, carol *enginetest.User // carol is a user of the peer
	// the activity that the instance had not sent to the peer when it was backed up
	unsent string
	file   string
	to     *enginetest.Instance // the restored instance
}

func newLost(t *testing.T, a, peer *enginetest.Instance) *lost {
	s := &lost{test: t, from: a, peer: peer, alice: a.CreateUser(t, "alice"), bob: a.CreateUser(t, "bob"), carol: peer.CreateUser(t, "carol")}
	s.alice.Configure(t, `{"profile":{"name":"Alice"}}`)
	befriend(t, s.carol, s.alice)
	befriend(t, s.alice, s.carol)
	befriend(t, s.bob, s.alice)
	sent, _ := s.alice.Post(t, map[string]any{"content": "line\nfeed, tab\t and \\N 🦝"})
	for _, reader := range []*enginetest.User{s.carol, s.bob} {
		reader.Await(t, "main", "the post", func(i enginetest.Item) bool { return i.ActivityURI == sent })
	}
	icon := s.alice.Upload(t, "/api/me/icon", "image/png", pictureOf(t, 40, 20))
	if icon.Status != http.StatusOK {
		t.Fatalf("the icon is answered %d %s", icon.Status, icon.Body)
	}
	enginetest.Eventually(t, "carol's server is told of the profile", func() bool {
		return len(s.alice.Column(t, `SELECT '' FROM activities WHERE type = 'Update' AND NOT EXISTS (SELECT FROM deliveries WHERE status = 'pending')`)) > 0
	})
	s.alice.Column(t, `INSERT INTO poison (uri, raw, reason) VALUES ('https://p.example/1', '\x00ff5c4e', 'unfit')`)
	peer.Stop(t)
	s.unsent, _ = s.alice.Post(t, map[string]any{"content": "nobody is there"})
	s.file = filepath.Join(enginetest.Dir(t), "backup.tar.gz")
	return s
}

// place makes an empty instance with the address of the lost instance.
func (s *lost) place(t *testing.T, settings ...string) *enginetest.Instance {
	t.Helper()
	i := enginetest.Make(t, append(settings, "LIGHTWEB_PUBLIC_URL="+s.from.URL, "LIGHTWEB_LISTEN="+strings.TrimPrefix(s.from.URL, "http://"))...)
	i.URL = s.from.URL
	if len(settings) == 0 {
		i.SQL(t, "postgres") // keeps the instance's PostgreSQL running between commands
	}
	return i
}

func (s *lost) besideServe(t *testing.T) {
	enginetest.Eventually(t, "an attempt failed", func() bool {
		return slices.Equal(s.alice.Column(t, `SELECT attempts FROM deliveries WHERE status = 'pending'`), []string{"1"})
	})
	var took struct {
		Users, Rows, Bytes int
		Keys, Whole        bool
		Failures           []struct{}
	}
	s.from.Run(t, "backup", s.file, "--json").Decode(t, &took)
	info, err := os.Stat(s.file)
	if err != nil || info.Mode().Perm() != 0o600 || int64(took.Bytes) != info.Size() || took.Users != 2 || took.Rows < 10 || !took.Keys || !took.Whole || len(took.Failures) != 0 {
		t.Errorf("backup --json wrote %+v, and a file %v, %v", took, info, err)
	}
	runAll(t, s.from, []command{
		{"backup " + s.file, 73, "is there already"},
		{"backup " + s.file + ".bob --user nobody_here", 67, "no user"},
		{"backup /nowhere/at/all", 73, "/nowhere/at/all cannot be written"},
		{"backup - --json", 64, ""},
		{"restore " + s.file, 75, "'lightweb serve' runs"},
		{"restore " + s.file + " --user alice --replace", 64, "--yes"},
		{"restore " + s.file + " --user alice --replace --yes", 75, "'lightweb serve' runs"},
		{"restore " + s.file + " --replace --yes", 64, "--user"},
	})
	var r restored
	s.from.Run(t, "restore", s.file, "--dry-run", "--json").Decode(t, &r)
	if r.Users != 2 || r.Fenced != 1 || r.Rows != took.Rows || !r.DryRun || !strings.Contains(r.Refusal, "2 users already") {
		t.Errorf("restore --dry-run beside an engine wrote %+v", r)
	}
	streamed := s.from.Run(t, "backup", "-", "--user", "bob", "--no-keys")
	if streamed.Code != 0 || !strings.HasPrefix(streamed.Stdout, "\x1f\x8b") {
		t.Errorf("backup - ended with %d and wrote %.20q, want an archive", streamed.Code, streamed.Stdout)
	}
	left, err := filepath.Glob(s.file + "*")
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %q, %v, want the backup alone", left, err)
	}
}

// Several backups are made while two users post. Each backup contains every post that was
// acknowledged before the backup began.
func (s *lost) busy(t *testing.T) {
	var mu sync.Mutex
	var accepted []string
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	for w := range 2 {
		writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				a := s.bob.Try(t, "CreateNote", map[string]any{"content": fmt.Sprint(w, " writes ", n), "to": []string{s.alice.ID}, "visibility": "direct"})
				if a.Status != http.StatusCreated {
					continue
				}
				var d enginetest.Dispatched
				a.Decode(t, &d)
				mu.Lock()
				accepted = append(accepted, d.ActivityID)
				mu.Unlock()
			}
		})
	}
	known := func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(accepted)
	}
	enginetest.Eventually(t, "something was written", func() bool { return len(known()) > 20 })
	before := known()
	file := filepath.Join(enginetest.Dir(t), "busy.tar.gz")
	if took := s.from.Run(t, "backup", file); took.Code != 0 {
		t.Fatalf("backup ended with %d: %s", took.Code, took.Stderr)
	}
	stop()
	writing.Wait()
	if during := len(known()) - len(before); during == 0 {
		t.Error("nothing was written during the backup: the test shows nothing")
	}
	to := s.place(t)
	if got := to.Run(t, "restore", file); got.Code != 0 {
		t.Fatalf("restore ended with %d: %s", got.Code, got.Stderr)
	}
	bob := &enginetest.User{Home: to, Name: "bob"}
	have := bob.Column(t, `SELECT uri FROM activities`)
	for _, id := range before {
		if !slices.Contains(have, id) {
			t.Errorf("%s was accepted before the backup and is not in it", id)
		}
	}
	if got := bob.Column(t, `SELECT count(*) FROM activities a WHERE type = 'Create' AND direction = 'outbound' AND
		(NOT EXISTS (SELECT FROM objects o WHERE o.uri = a.object_uri) OR NOT EXISTS (SELECT FROM delivery_jobs j WHERE j.activity_uri = a.uri))`); got[0] != "0" {
		t.Errorf("%s activities were copied without what was committed with them", got[0])
	}
}

// configured restores to a PostgreSQL server that database.url names. Then it backs that instance
// up and restores the backup to a private cluster.
func (s *lost) configured(t *testing.T) {
	there := s.place(t, "LIGHTWEB_DATABASE_URL="+startServer(t))
	var r restored
	there.Run(t, "restore", s.file, "--json").Decode(t, &r)
	if r.Users != 2 || r.Fenced != 1 {
		t.Errorf("restore wrote %+v", r)
	}
	again := filepath.Join(enginetest.Dir(t), "again.tar.gz")
	if got := there.Run(t, "backup", again); got.Code != 0 {
		t.Fatalf("backup ended with %d: %s", got.Code, got.Stderr)
	}
	s.to = s.place(s.test)
	if got := s.to.Run(t, "restore", again); got.Code != 0 {
		t.Fatalf("restore ended with %d: %s", got.Code, got.Stderr)
	}
	for _, database := range []string{"lightweb", "lightweb_alice", "lightweb_bob"} {
		s.same(t, database)
	}
	files := 0
	for _, folder := range []string{"users/alice", "users/alice/media", "users/alice/keys", "users/bob/keys", "instance/keys"} {
		listed, err := os.ReadDir(filepath.Join(s.from.DataDir, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range listed {
			if f.IsDir() {
				continue
			}
			files++
			want, wantErr := os.ReadFile(filepath.Join(s.from.DataDir, folder, f.Name()))
			path := filepath.Join(s.to.DataDir, folder, f.Name())
			got, gotErr := os.ReadFile(path)
			info, statErr := os.Stat(path)
			if wantErr != nil || gotErr != nil || statErr != nil || !bytes.Equal(want, got) || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v, %v; want it as it was, mode 0600", path, wantErr, gotErr, statErr)
			}
		}
	}
	if files != 8 {
		t.Errorf("there were %d files to compare, want six keys, a configuration and a picture", files)
	}
}

// same compares each table of a restored database with the same table of the lost instance.
func (s *lost) same(t *testing.T, database string) {
	t.Helper()
	rows := func(i *enginetest.Instance) map[string]string {
		found, err := i.SQL(t, database).QueryContext(t.Context(), `SELECT relname FROM pg_class
			WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relpersistence = 'p' AND relname <> 'schema_migrations'`) // only tables that survive a crash
		if err != nil {
			t.Fatal(err)
		}
		defer found.Close()
		all := map[string]string{}
		for found.Next() {
			var name string
			if err := found.Scan(&name); err != nil {
				t.Fatal(err)
			}
			all[name] = ""
		}
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
		for name := range all {
			var text string
			if err := i.SQL(t, database).QueryRowContext(t.Context(), `SELECT coalesce(string_agg(x::text, E'\n' ORDER BY x::text), '') FROM (SELECT to_jsonb(t) - 'next_due' - 'events_due' FROM `+name+` t) x`).Scan(&text); err != nil {
				t.Fatal(err)
			}
			all[name] = text
		}
		return all
	}
	want, got := rows(s.from), rows(s.to)
	for _, table := range []string{"deliveries", "hosts"} { // the fence changes deliveries; the first instance changes hosts while it runs
		delete(want, table)
		delete(got, table)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the database %s: %.3000s", database, d)
	}
}

// killedBackup kills several backups while they are written. The next backup succeeds, and no
// partial file remains.
func (s *lost) killedBackup(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	s.from.Run(t, "backup", filepath.Join(dir, "first.tar.gz"))
	whole := time.Since(began)
	const parts = 4
	for n := range parts {
		s.from.RunUntil(t, whole*time.Duration(n+1)/parts, "backup", filepath.Join(dir, fmt.Sprint(n, ".tar.gz")))
	}
	if last := s.from.Run(t, "backup", filepath.Join(dir, "last.tar.gz")); last.Code != 0 {
		t.Errorf("a backup after killed ones ended with %d: %s", last.Code, last.Stderr)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if !strings.HasSuffix(f.Name(), ".tar.gz") {
			t.Errorf("%s was left behind", f.Name())
			continue
		}
		if tried := s.from.Run(t, "restore", filepath.Join(dir, f.Name()), "--dry-run"); tried.Code != 0 {
			t.Errorf("%s is not whole: restore --dry-run ended with %d: %s", f.Name(), tried.Code, tried.Stderr)
		}
	}
}

// killed kills several restores while they run. After each kill the instance has no users or all
// users. The last restore succeeds.
func (s *lost) killed(t *testing.T) {
	to := s.place(t)
	to.Run(t, "user", "list") // makes the databases, so that each kill below interrupts the restore itself
	began := time.Now()
	to.Run(t, "restore", s.file, "--dry-run")
	whole := time.Since(began)
	const parts = 4
	for n := range parts {
		to.RunUntil(t, whole*time.Duration(n+1)/parts, "restore", s.file)
		var list struct{ Users []fields }
		to.Run(t, "user", "list", "--json").Decode(t, &list)
		if len(list.Users) != 0 && len(list.Users) != 2 {
			t.Errorf("after a restore was killed at %d/%d there are %+v, want nobody or all", n+1, parts, list.Users)
		}
	}
	last := to.Run(t, "restore", s.file)
	if last.Code != 0 && last.Code != 73 {
		t.Errorf("the last restore ended with %d: %s", last.Code, last.Stderr)
	}
	// drops the databases that the last killed restore left
	to.Run(t, "restore", s.file, "--dry-run")
	var status struct{ Users []struct{ Usable bool } }
	to.Run(t, "db", "status", "--json").Decode(t, &status)
	if len(status.Users) != 2 || !status.Users[0].Usable || !status.Users[1].Usable {
		t.Errorf("afterwards db status is %+v", status)
	}
	alice := &enginetest.User{Home: to, Name: "alice"}
	if got := alice.Column(t, `SELECT datname FROM pg_database WHERE datname LIKE '%-restoring'`); len(got) != 0 {
		t.Errorf("%q were left", got)
	}
	if got := alice.Column(t, `SELECT uri FROM activities WHERE uri = $1`, s.unsent); len(got) != 1 {
		t.Error("alice's last post is not there")
	}
}

func (s *lost) refusals(t *testing.T) {
	empty := s.place(t)
	data, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		path := filepath.Join(enginetest.Dir(t), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	flipped := bytes.Clone(data)
	flipped[len(flipped)*2/3] ^= 1
	runAll(t, empty, []command{
		{"restore " + write("cut", data[:len(data)*9/10]), 65, "damaged"},
		{"restore " + write("flipped", flipped), 65, "damaged"},
		{"restore " + write("text", []byte("hello")), 65, "not a backup"},
		{"restore " + s.file + ".none", 66, ""},
		{"restore " + s.file + " --user nobody_here", 67, "holds nothing"},
	})
	empty.Set("LIGHTWEB_PUBLIC_URL=http://127.0.0.1:1")
	runAll(t, empty, []command{{"restore " + s.file, 78, "set public_url to " + s.from.URL}})
	empty.Set("LIGHTWEB_PUBLIC_URL=" + s.from.URL)
	var list struct{ Users []fields }
	empty.Run(t, "user", "list", "--json").Decode(t, &list)
	if len(list.Users) != 0 {
		t.Errorf("what was refused left %+v", list.Users)
	}
	if _, err := os.Stat(filepath.Join(empty.DataDir, "users")); err == nil {
		t.Error("what was refused left files of users")
	}

	// A backup without keys can only be restored where the keys of its user and of the
	// instance exist.
	bare := filepath.Join(enginetest.Dir(t), "bare.tar.gz")
	if got := s.from.Run(t, "backup", bare, "--user", "bob", "--no-keys"); got.Code != 0 {
		t.Fatalf("backup ended with %d: %s", got.Code, got.Stderr)
	}
	runAll(t, empty, []command{
		{"restore " + bare, 64, "--user"},
		{"restore " + bare + " --user alice", 67, "holds nothing"},
		{"restore " + bare + " --user bob", 78, "does not hold the key"},
	})
	for _, folder := range []string{"users/bob", "instance"} {
		if err := os.CopyFS(filepath.Join(empty.DataDir, folder), os.DirFS(filepath.Join(s.from.DataDir, folder))); err != nil {
			t.Fatal(err)
		}
		if folder == "users/bob" {
			runAll(t, empty, []command{{"restore " + bare + " --user bob", 78, "does not hold the key " + empty.DataDir + "/instance/keys/"}})
		}
	}
	runAll(t, empty, []command{{"restore " + bare + " --user bob -q", 0, ""}, {"user show bob -q", 0, ""}})
}

// livesOn starts the restored instance. The instance federates. It does not send the deliveries
// that were still owed when the backup was made.
func (s *lost) livesOn(t *testing.T) {
	s.peer.Start(t)
	s.to.Start(t)
	alice, bob := &enginetest.User{Home: s.to, Name: "alice", ID: s.alice.ID, Token: s.alice.Token}, &enginetest.User{Home: s.to, Name: "bob", ID: s.bob.ID, Token: s.bob.Token}
	post, _ := alice.Post(t, map[string]any{"content": "I am back"})
	for _, reader := range []*enginetest.User{s.carol, bob} {
		reader.Await(t, "main", "a post from the restored instance", func(i enginetest.Item) bool { return i.ActivityURI == post })
	}
	reply, _ := s.carol.Post(t, map[string]any{"content": "welcome back"})
	alice.Await(t, "main", "a post to the restored instance", func(i enginetest.Item) bool { return i.ActivityURI == reply })
	if got := alice.Column(t, `SELECT d.status || ' ' || left(d.last_error, 8) FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE j.activity_uri = $1 AND host <> ''`, s.unsent); !slices.Equal(got, []string{"skipped not sent"}) {
		t.Errorf("what was owed is %q, want it skipped with a reason", got)
	}
	if got := s.carol.Column(t, `SELECT count(*) FROM activities WHERE uri = $1`, s.unsent); !slices.Equal(got, []string{"0"}) {
		t.Error("what the backup still owed was sent")
	}
	s.to.Stop(t)
}

func (s *lost) oneUser(t *testing.T) {
	runAll(t, s.to, []command{
		{"restore " + s.file, 73, "2 users already"},
		{"restore " + s.file + " --user alice", 73, "--replace"},
	})
	lost := s.to.SQL(t, "lightweb")
	if _, err := lost.ExecContext(t.Context(), `DROP DATABASE lightweb_bob`); err != nil {
		t.Fatal(err)
	}
	without := filepath.Join(enginetest.Dir(t), "without.tar.gz")
	if took := s.to.Run(t, "backup", without); took.Code != 3 || !strings.Contains(took.Stderr, "lacks the database of 1 of 2 users") || !strings.Contains(took.Stdout, "failure: bob: ") {
		t.Errorf("backup without a database ended with %d and said %q, %q", took.Code, took.Stderr, took.Stdout)
	}
	runAll(t, s.to, []command{{"backup " + without + ".bob --user bob", 69, ""}})
	empty := s.place(t)
	got := empty.Run(t, "restore", without, "--json")
	var r restored
	got.Decode(t, &r)
	if got.Code != 3 || !slices.Equal(r.Without, []string{"bob"}) || !strings.Contains(got.Stderr, "--user bob") {
		t.Errorf("restore of a backup without bob's database ended with %d and wrote %+v, %s", got.Code, r, got.Stderr)
	}
	runAll(t, empty, []command{{"restore " + s.file + " --user bob -q", 0, ""}})
	runAll(t, s.to, []command{{"restore " + s.file + " --user bob -q", 0, ""}})

	rsa := filepath.Join(s.to.DataDir, "users", "alice", "keys", "rsa.pem")
	other, err := os.ReadFile(filepath.Join(s.to.DataDir, "users", "bob", "keys", "rsa.pem"))
	if err == nil {
		err = os.WriteFile(rsa, other, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	runAll(t, s.to, []command{{"restore " + s.file + " --user alice --replace --yes", 73, "is another key"}})
	s.to.Run(t, "restore", s.file, "--user", "alice", "--replace", "--yes", "--keep-keys", "--json").Decode(t, &r)
	if !strings.HasPrefix(r.PutAside, "lightweb_alice-replaced-") || !slices.Equal(r.Kept, []string{rsa}) {
		t.Errorf("restore --replace --keep-keys wrote %+v", r)
	}
	if kept, err := os.ReadFile(rsa); err != nil || !bytes.Equal(kept, other) {
		t.Errorf("the key that was to be kept was replaced, %v", err)
	}
	var status struct{ Users []struct{ Usable bool } }
	s.to.Run(t, "db", "status", "--json").Decode(t, &status)
	if len(status.Users) != 2 || !status.Users[0].Usable || !status.Users[1].Usable {
		t.Errorf("afterwards db status is %+v", status)
	}
}
