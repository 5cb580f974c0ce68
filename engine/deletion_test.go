package engine_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// Every request at once treats a deleted user as gone. Then the servers that knew the user delete
// the user. In the end this server keeps only the name.
func deletionReachesEverybody(t *testing.T, a, b *enginetest.Instance) {
	della, doria, dino := a.CreateUser(t, "della"), a.CreateUser(t, "doria"), b.CreateUser(t, "dino")
	befriend(t, dino, della)
	befriend(t, doria, della)
	create, note := della.Post(t, map[string]any{"content": "soon gone", "visibility": "public"})
	for _, u := range []*enginetest.User{doria, dino} {
		u.Await(t, "main", "della's post", func(i enginetest.Item) bool { return i.ActivityURI == create })
	}
	hold := func(what string) {
		if got := a.Run(t, "host", what, strings.TrimPrefix(b.URL, "http://")); got.Code != 0 {
			t.Fatalf("host %s ended with %d: %s", what, got.Code, got.Stderr)
		}
	}
	hold("pause")
	if got := a.Run(t, "user", "delete", "della"); got.Code != 64 {
		t.Errorf("user delete that nobody confirms ended with %d, want 64", got.Code)
	}
	for _, attempt := range []string{"the first time", "again"} {
		if got := a.Run(t, "user", "delete", "della", "--yes"); got.Code != 0 {
			t.Fatalf("user delete, %s, ended with %d: %s", attempt, got.Code, got.Stderr)
		}
	}
	enginetest.Eventually(t, "the post is gone", func() bool { return enginetest.Fetch(t, note).Status == http.StatusGone })
	var shown map[string]any
	got := enginetest.Fetch(t, della.ID)
	got.Decode(t, &shown)
	if got.Status != http.StatusOK || shown["publicKey"] == nil || shown["followers"] != nil {
		t.Errorf("while a server has not heard of it the actor is answered %d with %v, want 200 with its keys alone", got.Status, shown)
	}
	if got = della.Try(t, "CreateNote", map[string]any{"content": "too late"}); got.Status != http.StatusUnauthorized {
		t.Errorf("a dispatch was answered %d, want 401", got.Status)
	}
	hold("resume")
	for _, u := range []*enginetest.User{doria, dino} {
		enginetest.Eventually(t, u.Name+" holds nothing of della", func() bool {
			return len(u.Column(t, `SELECT actor_uri FROM relationships WHERE actor_uri = $1`, della.ID)) == 0 &&
				u.Column(t, `SELECT count(*) FROM objects WHERE raw ->> 'attributedTo' = $1`, della.ID)[0] == "0"
		})
	}
	expectDeleted(t, a, della)
	if got := a.Run(t, "user", "delete", "della", "--yes"); got.Code != 66 {
		t.Errorf("user delete of a deleted user ended with %d, want 66", got.Code)
	}
	if got := a.Run(t, "user", "create", "della"); got.Code != 73 {
		t.Errorf("user create with the name of a deleted user ended with %d, want 73", got.Code)
	}
}

// expectDeleted waits until only the name of a user remains.
func expectDeleted(t *testing.T, i *enginetest.Instance, u *enginetest.User) {
	t.Helper()
	enginetest.Eventually(t, u.Name+" is deleted", func() bool { return enginetest.Fetch(t, u.ID).Status == http.StatusGone })
	enginetest.Eventually(t, u.Name+" is a tombstone", func() bool {
		var state string
		err := i.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT state FROM users WHERE username = $1`, u.Name).Scan(&state)
		return err == nil && state == "deleted"
	})
	for what, query := range map[string]string{
		"databases":     `SELECT count(*) FROM pg_database WHERE datname = 'lightweb_' || $1`,
		"tokens":        `SELECT count(*) FROM tokens WHERE username = $1`,
		"acquaintances": `SELECT count(*) FROM acquaintances WHERE username = $1`,
		"entries":       `SELECT count(*) FROM intake_waiting WHERE username = $1`,
	} {
		var n int
		if err := i.SQL(t, "lightweb").QueryRowContext(t.Context(), query, u.Name).Scan(&n); err != nil || n != 0 {
			t.Errorf("%d %s of %s are left, err %v; want none", n, what, u.Name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(i.DataDir, "users", u.Name)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of %s: %v, want none", u.Name, err)
	}
}

// A deletion's command or the engine is killed at a random moment. When the command runs again, it
// completes the deletion.
func TestADeletionThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	const kills = 20
	random := rand.New(rand.NewPCG(17, 2))
	i := enginetest.Start(t)
	follower := i.CreateUser(t, "stays")
	for n := range kills {
		u := i.CreateUser(t, fmt.Sprint("goes", n))
		befriend(t, follower, u)
		u.Post(t, map[string]any{"content": "soon gone", "visibility": "public"})
		i.RunUntil(t, time.Duration(random.IntN(400))*time.Millisecond, "user", "delete", u.Name, "--yes")
		if n%2 == 0 {
			i.Run(t, "user", "delete", u.Name, "--yes")
			after := time.NewTimer(time.Duration(random.IntN(5000)) * time.Millisecond)
			<-after.C
			i.Kill()
			i.Start(t)
		}
	}
	for n := range kills {
		name := fmt.Sprint("goes", n)
		if got := i.Run(t, "user", "delete", name, "--yes"); got.Code != 0 && got.Code != 66 {
			t.Errorf("user delete %s ended with %d: %s", name, got.Code, got.Stderr)
		}
	}
	for n := range kills {
		name := fmt.Sprint("goes", n)
		expectDeleted(t, i, &enginetest.User{Home: i, Name: name, ID: i.URL + "/users/" + name})
	}
	if left := follower.Column(t, `SELECT actor_uri FROM relationships`); len(left) != 0 {
		t.Errorf("the follower still has to do with %v", left)
	}
}

// cutRemoval kills the engine. It makes the state in which a kill leaves a half-done removal of
// the user cut: the database is gone, and the user's row says that the removal has begun.
func cutRemoval(t *testing.T, i *enginetest.Instance) {
	t.Helper()
	i.Kill()
	for _, left := range []string{
		`UPDATE users SET state = 'deleting', deleted_at = now(), schema_version = 0 WHERE username = 'cut'`,
		`DROP DATABASE lightweb_cut WITH (FORCE)`,
	} {
		if _, err := i.SQL(t, "lightweb").ExecContext(t.Context(), left); err != nil {
			t.Fatal(err)
		}
	}
}

// The removal of a user is killed when the user's database is already gone, so other servers can
// no longer be informed. The next start completes the removal.
func TestARemovalThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	u := i.CreateUser(t, "cut")
	cutRemoval(t, i)
	i.Start(t)
	expectDeleted(t, i, u)
}

// A user is deleted during a backup that has not reached the user yet. The backup holds the whole
// user. When the backup has ended, the deletion continues.
func TestADeletionDuringABackupWaitsForItsEnd(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	i.CreateUser(t, "alice")
	carl := i.CreateUser(t, "carl")
	post, _ := carl.Post(t, map[string]any{"content": "soon gone", "visibility": "public"})
	file := backUp(t, i, sync.OnceFunc(func() {
		if got := i.Run(t, "user", "delete", "carl", "--yes"); got.Code != 0 {
			t.Errorf("user delete ended with %d: %s", got.Code, got.Stderr)
		}
		enginetest.Eventually(t, "the removal waits, or is done", func() bool {
			return strings.Contains(i.Log(), "user not deleted yet") || strings.Contains(i.Log(), "user deleted")
		})
	}))
	if log := i.Log(); !strings.Contains(log, "'lightweb backup' runs") {
		t.Errorf("the log does not say that the deletion waits for the backup: %s", log)
	}
	expectDeleted(t, i, carl)
	i.Stop(t)
	to := (&lost{from: i}).place(t)
	if got := to.Run(t, "restore", file); got.Code != 0 {
		t.Fatalf("restore ended with %d: %s", got.Code, got.Stderr)
	}
	if got := (&enginetest.User{Home: to, Name: "carl"}).Column(t, `SELECT count(*) FROM activities WHERE uri = $1`, post); got[0] != "1" {
		t.Errorf("the backup holds carl's post %s times, want once", got[0])
	}
}

// A backup is made after a removal was killed. The backup holds only the name of the user. When
// the backup is restored, the removal continues.
func TestABackupHoldsAUserWhoIsBeingRemovedByNameOnly(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	i.CreateUser(t, "alice")
	cut := i.CreateUser(t, "cut")
	cutRemoval(t, i)
	if err := os.RemoveAll(filepath.Join(i.DataDir, "users", "cut", "keys")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(enginetest.Dir(t), "backup.tar.gz")
	to := (&lost{from: i}).place(t)
	runAll(t, i, []command{{"backup " + file + " -q", 0, ""}, {"backup " + file + ".cut --user cut", 66, "deleted"}})
	runAll(t, to, []command{{"restore " + file + " -q", 0, ""}, {"restore " + file + " --user cut --replace --yes", 66, "deleted"}})
	to.Start(t)
	expectDeleted(t, to, cut)
	file += ".deleted"
	runAll(t, to, []command{{"user export cut " + file, 66, "deleted"}, {"backup " + file + " --user cut", 66, "deleted"}})
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the export of a deleted user left a file, %v", err)
	}
}

// Commands do not change a user who is being deleted. They refuse a deleted user.
func TestCommandsRefuseDeletedUsers(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t, "EDITOR=true")
	runAll(t, i, []command{{"user create alice -q", 0, ""}})
	set := func(state string) {
		t.Helper()
		if _, err := i.SQL(t, "lightweb").ExecContext(t.Context(), `UPDATE users SET state = $1, deleted_at = now() WHERE username = 'alice'`, state); err != nil {
			t.Fatal(err)
		}
	}
	set("deleting")
	for _, line := range []string{"user config set alice profile.name Zed", "user config edit alice", "user redis-acl alice --apply", "user redis-acl alice"} {
		runAll(t, i, []command{{line, 67, "is deleting"}})
	}
	runAll(t, i, []command{{"deliver list alice", 0, ""}, {"user config get alice -q", 0, ""}})

	set("deleted")
	if err := os.RemoveAll(filepath.Join(i.DataDir, "users", "alice")); err != nil {
		t.Fatal(err)
	}
	const some = " 0192d3a4-0000-7000-8000-000000000000"
	for _, line := range []string{
		"user config set alice profile.name Zed", "user config edit alice", "user config get alice", "user config check alice", "user redis-acl alice --apply",
		"user audit alice", "user token list alice", "user token revoke --yes alice" + some, "user passwd alice --remove", "user link-oidc alice --list",
		"deliver list alice", "deliver status alice", "deliver retry alice", "inbox list alice", "inbox retry alice", "inbox drop alice --yes",
		"conversation list alice", "conversation show alice" + some, "conversation reset --yes alice" + some, "keypackage stats alice", "cache rebuild alice",
		"stream tail alice", "stream tail alice --group llm", "db migrate alice", "db acquaint alice", "prune alice",
	} {
		runAll(t, i, []command{{line, 67, "is deleted"}})
	}
	if _, err := os.Stat(filepath.Join(i.DataDir, "users", "alice")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of alice: %v, want none", err)
	}
}
