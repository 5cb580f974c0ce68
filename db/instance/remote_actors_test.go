package instance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The instance stores only those parts of an actor that the engine reads. It also reduces rows
// that an earlier engine stored whole.
func TestRemoteActorsAreReduced(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	long := `,"summary":"` + strings.Repeat("x", 50<<10) + `","attachment":"` + strings.Repeat("y", 50<<10) + `"`
	if err := c.Instance.Actors.Save(t.Context(), instance.RemoteActor{Actor: actorOf(t, bob, long), FetchedAt: now}); err != nil {
		t.Fatal(err)
	}
	var size int
	if err := dbtest.Database(t, cfg.Name).QueryRowContext(t.Context(), `SELECT octet_length(raw::text) FROM actors`).Scan(&size); err != nil || size > 16<<10 {
		t.Errorf("stored are %d bytes, %v; want 16 KiB at most", size, err)
	}
	dbtest.Run(t, cfg.Name, `UPDATE actors SET raw = raw || '{`+long[1:]+`}'`)
	if r, err := c.Instance.Actors.Find(t.Context(), bob); err != nil || len(r.Actor.Raw) > 16<<10 {
		t.Errorf("RemoteActor of a row from before = %v, %v", r, err)
	}
}

func TestOnlyARememberedActorIsRenewed(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	renew := func(name string) string {
		t.Helper()
		if err := c.Instance.Actors.Renew(t.Context(), instance.RemoteActor{Actor: actorOf(t, bob, `,"name":"`+name+`"`+key(bob+"#key", bob)), FetchedAt: now}); err != nil {
			t.Fatal(err)
		}
		r, err := c.Instance.Actors.FindByKey(t.Context(), bob+"#key")
		if err != nil || r == nil {
			return ""
		}
		return r.Actor.Name
	}
	if got := renew("one"); got != "" {
		t.Errorf("a stranger is remembered as %q", got)
	}
	if err := c.Instance.Actors.Save(t.Context(), instance.RemoteActor{Actor: actorOf(t, bob, `,"name":"two"`), FetchedAt: now}); err != nil {
		t.Fatal(err)
	}
	if got := renew("three"); got != "three" {
		t.Errorf("renewed it is remembered as %q", got)
	}
}

// An actor without acquaintances is forgotten 30 days after its last use. The mark that an actor
// is gone is forgotten after a year.
func TestUnusedRemoteActorsAreForgotten(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	u := dbtest.User(t, c, "alice")
	id := func(name string) vocab.ID { return vocab.ID("https://peer.example/" + name) }
	const day = 24 * time.Hour
	for name, unused := range map[string]time.Duration{"new": 29 * day, "old": 31 * day, "known": 400 * day, "gone": 300 * day, "buried": 366 * day, "back": 31 * day} {
		if err := c.Instance.Actors.Save(t.Context(), instance.RemoteActor{Actor: actorOf(t, id(name), key(id(name)+"#key", id(name))), FetchedAt: now}); err != nil {
			t.Fatal(err)
		}
		dbtest.Run(t, cfg.Name, fmt.Sprintf(`UPDATE actors SET used_at = '%s' WHERE uri = '%s'`, now.Add(-unused).Format(time.RFC3339), id(name)))
		if name == "gone" || name == "buried" {
			if err := c.Instance.Actors.MarkGone(t.Context(), id(name), now.Add(-unused)); err != nil {
				t.Fatal(err)
			}
		}
	}
	dbtest.Run(t, cfg.Name, `INSERT INTO actors (uri, host, raw, fetched_at, used_at) SELECT 'https://many.example/' || n, 'many.example', '{}', now(), '2001-01-01' FROM generate_series(1, 1100) n`)
	if err := c.Instance.Acquaintances.Add(t.Context(), id("known"), []vocab.Username{u}, false); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		want bool
	}{{"back", true}, {"nobody", false}} {
		if got, err := c.Instance.Actors.NoteUse(t.Context(), id(tt.name), now, now.Add(-day)); err != nil || got != tt.want {
			t.Errorf("UseRemoteActor(%s) = %t, %v", tt.name, got, err)
		}
	}
	for _, dryRun := range []bool{true, false} {
		if n, err := c.Instance.Actors.Prune(t.Context(), now, dryRun); err != nil || n != 1102 {
			t.Errorf("PruneRemoteActors(dry run %t) = %d, %v, want 1102", dryRun, n, err)
		}
	}
	for name, want := range map[string]bool{"new": true, "old": false, "known": true, "gone": true, "buried": false, "back": true} {
		if r, err := c.Instance.Actors.Find(t.Context(), id(name)); err != nil || (r != nil) != want {
			t.Errorf("RemoteActor(%s) = %v, %v, want it remembered: %t", name, r, err, want)
		}
	}
}

// A user's database may be away for longer than 30 days. The activities that wait for it meanwhile
// are applied with the stored copies of their actors.
func TestActorsOfActivitiesInTheJournalStay(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	u := dbtest.User(t, c, "alice")
	const day = 24 * time.Hour
	id := func(name string) vocab.ID { return vocab.ID("https://peer.example/" + name) }
	for name, unused := range map[string]time.Duration{"sender": 61 * day, "before": 63 * day} { // the sender's use was noted on the day before
		if err := c.Instance.Actors.Save(t.Context(), instance.RemoteActor{Actor: actorOf(t, id(name), ""), FetchedAt: now}); err != nil {
			t.Fatal(err)
		}
		dbtest.Run(t, cfg.Name, fmt.Sprintf(`UPDATE actors SET used_at = '%s' WHERE uri = '%s'`, now.Add(-unused).Format(time.RFC3339), id(name)))
	}
	in := intake("1", nil, []vocab.Username{u})
	in.ReceivedAt = now.Add(-60 * day)
	row := accept(t, c, in)
	prune := func(want ...string) {
		t.Helper()
		if _, err := c.Instance.Actors.Prune(t.Context(), now, false); err != nil {
			t.Fatal(err)
		}
		if got := dbtest.Rows(t, cfg.Name, `SELECT uri FROM actors ORDER BY uri`); !slices.Equal(got, want) {
			t.Errorf("the prune leaves %q, want %q", got, want)
		}
	}
	prune("(" + string(id("sender")) + ")")
	if _, err := c.Instance.Journal.FinishWaiting(t.Context(), u, []instance.IntakeRow{row}); err != nil {
		t.Fatal(err)
	}
	prune()
}

// The time of an actor's last use is stored at most once a day.
func TestUseIsNotedOnceADay(t *testing.T) {
	t.Parallel()
	c, cfg := dbtest.Named(t)
	if err := c.Instance.Actors.Save(t.Context(), instance.RemoteActor{Actor: actorOf(t, bob, ""), FetchedAt: now}); err != nil {
		t.Fatal(err)
	}
	dbtest.Run(t, cfg.Name, `UPDATE actors SET used_at = '2001-01-01'`)
	version := func(at time.Time) (xmin string) {
		t.Helper()
		if known, err := c.Instance.Actors.NoteUse(t.Context(), bob, at, at.Add(-24*time.Hour)); err != nil || !known {
			t.Fatalf("UseRemoteActor = %t, %v", known, err)
		}
		if err := dbtest.Database(t, cfg.Name).QueryRowContext(t.Context(), `SELECT xmin::text FROM actors`).Scan(&xmin); err != nil {
			t.Fatal(err)
		}
		return xmin
	}
	first := version(now)
	if again := version(now.Add(23 * time.Hour)); again != first {
		t.Error("the row is written twice within a day")
	}
	if next := version(now.Add(25 * time.Hour)); next == first {
		t.Error("a day later the use is not noted")
	}
}
