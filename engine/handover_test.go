package engine_test

import (
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/instance"
)

// A backup takes one snapshot per user, in the order of names. A post reaches alice after her
// snapshot, and bob before his. The snapshot of zoe, the post's author, is the last. After the
// restore both readers have the post exactly once.
func TestARestoreRepeatsHandOversBetweenTwoSnapshots(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	early, late, author := i.CreateUser(t, "alice"), i.CreateUser(t, "bob"), i.CreateUser(t, "zoe") // snapshots are taken in the order of names
	befriend(t, early, author)
	befriend(t, late, author)
	before, _ := author.Post(t, map[string]any{"content": "before the backup"})
	reached(t, author, before)
	author.Column(t, `UPDATE deliveries SET updated_at = updated_at - interval '1 hour' RETURNING ''`)
	var between string
	file := backUp(t, i, sync.OnceFunc(func() {
		between, _ = author.Post(t, map[string]any{"content": "between two snapshots"})
		reached(t, author, between)
	}))
	i.Stop(t)
	to := (&lost{from: i}).place(t)
	if got := to.Run(t, "restore", file); got.Code != 0 {
		t.Fatalf("restore ended with %d: %s", got.Code, got.Stderr)
	}
	in := func(u *enginetest.User) *enginetest.User {
		return &enginetest.User{Home: to, Name: u.Name, ID: u.ID, Token: u.Token}
	}
	if got := in(author).Column(t, `SELECT j.activity_uri FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE d.status = 'pending'`); !slices.Equal(got, []string{between, between}) {
		t.Errorf("owed after the restore: %q, want the post between two snapshots to both readers, and nothing else", got)
	}
	for u, want := range map[*enginetest.User]string{early: "0", late: "1"} {
		if got := in(u).Column(t, `SELECT count(*) FROM feed WHERE activity_uri = $1`, between); !slices.Equal(got, []string{want}) {
			t.Fatalf("the backup of %s holds the post %s times, want %s: the test shows nothing", u.Name, got, want)
		}
	}
	to.Start(t)
	reached(t, in(author), between)
	for _, u := range []*enginetest.User{in(early), in(late)} {
		for _, query := range []string{
			`SELECT count(*) FROM feed WHERE activity_uri = $1`,
			`SELECT count(*) FROM event_outbox WHERE type = 'create.received' AND payload ->> 'activityUri' = $1`,
		} {
			if got := u.Column(t, query, between); !slices.Equal(got, []string{"1"}) {
				t.Errorf("%s: %s is %s after the restore, want 1", u.Name, query, got)
			}
		}
	}
}

// backUp backs up an instance that serves. It calls meanwhile() after the snapshot of each user.
func backUp(t *testing.T, i *enginetest.Instance, meanwhile func()) (file string) {
	t.Helper()
	file = filepath.Join(enginetest.Dir(t), "backup.tar.gz")
	besideEngine(t, i, func(tasks *admin.Tasks) {
		took, err := tasks.Backups.WriteFile(t.Context(), file, admin.BackupOptions{Progress: func(int, int) { meanwhile() }})
		if err != nil || len(took.Failures) > 0 {
			t.Fatalf("the backup ended with %+v, %v", took, err)
		}
	})
	return file
}

// besideEngine opens an instance beside its engine, as commands do, and calls work().
func besideEngine(t *testing.T, i *enginetest.Instance, work func(*admin.Tasks)) {
	t.Helper()
	c := instance.DefaultConfig(i.DataDir)
	c.PublicURL = i.URL
	in, err := instance.Open(t.Context(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := in.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	work(admin.New(in))
}

// reached waits until all deliveries of an activity have arrived.
func reached(t *testing.T, author *enginetest.User, activity string) {
	t.Helper()
	enginetest.Eventually(t, activity+" is delivered", func() bool {
		return slices.Equal(author.Column(t, `SELECT DISTINCT d.status FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE j.activity_uri = $1`, activity), []string{"delivered"})
	})
}
