package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/enginetest"
)

// inboxDoc is the output of inbox list --json.
type inboxDoc struct {
	Items []struct {
		User, State, Activity, Type, Actor, Reason string
	}
	Poison, Waiting int
}

func inboxList(t *testing.T, i *enginetest.Instance, who string) (l inboxDoc) {
	t.Helper()
	i.Run(t, "inbox", "list", who, "--json").Decode(t, &l)
	return l
}

// Beside a serving engine, commands list, retry and drop the activities that users have not
// received. A user whose database cannot be used gets the remaining activities later, even if the
// engine was killed meanwhile.
func TestWhatUsersDoNotHave(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	author, ill, well := i.CreateUser(t, "nora"), i.CreateUser(t, "olaf"), i.CreateUser(t, "pia")
	befriend(t, ill, author)
	befriend(t, well, author)
	setDirty := func(dirty bool) {
		ill.Column(t, fmt.Sprintf(`UPDATE schema_migrations SET dirty = %t RETURNING ''`, dirty))
		dbtest.EndConnections(t, ill.Home.SQL(t, "lightweb_"+ill.Name))
	}
	setDirty(true)
	var posts []string
	for n := range 5 {
		id, _ := author.Post(t, map[string]any{"content": fmt.Sprint("number ", n)})
		posts = append(posts, id)
	}
	held := func(u *enginetest.User) []string {
		return u.Column(t, `SELECT payload ->> 'activityUri' FROM event_outbox WHERE type = 'create.received' ORDER BY seq`)
	}
	enginetest.Eventually(t, "the healthy user has all", func() bool { return len(held(well)) == 5 })
	enginetest.Eventually(t, "all wait for the other", func() bool { return inboxList(t, i, "olaf").Waiting == 5 })
	l := inboxList(t, i, "olaf")
	for n, item := range l.Items {
		if item.User != "olaf" || item.State != "waiting" || item.Type != "Create" || item.Actor != author.ID || !slices.Contains(posts, item.Activity) {
			t.Errorf("item %d is %+v", n, item)
		}
	}
	runAll(t, i, []command{
		{"inbox list", 64, "give either users or --all"},
		{"inbox list olaf --all", 64, "give either users or --all"},
		{"inbox list nobody_here", 67, "no user"},
		{"inbox list olaf --limit 0", 64, "--limit"},
		{"inbox list olaf -q", 3, "could not be looked at"},
		{"inbox retry pia -q", 0, ""},
		{"inbox retry pia --activity https://nowhere.example/1", 66, "nothing set aside or waiting"},
		{"inbox drop olaf", 64, "--yes"},
		{"inbox drop olaf --state ill --yes", 64, "not poison or waiting"},
		{"inbox drop olaf --state waiting --dry-run -q", 0, ""},
		{"inbox drop olaf --state waiting --activity " + posts[2] + " --yes -q", 0, ""},
	})
	i.Kill()
	i.Start(t)
	setDirty(false)
	enginetest.Eventually(t, "the other has what was not dropped", func() bool { return len(held(ill)) == 4 })
	got := held(ill)
	if want := slices.DeleteFunc(slices.Clone(posts), func(id string) bool { return id == posts[2] }); !sameSet(got, want) {
		t.Errorf("olaf has %q, want %q", got, want)
	}
	if l := inboxList(t, i, "--all"); l.Waiting != 0 || l.Poison != 0 || len(l.Items) != 0 {
		t.Errorf("in the end inbox list wrote %+v, want nothing", l)
	}

	// This makes the state in which a failure of the engine leaves an activity. After a retry
	// the activity takes effect.
	ill.Column(t, `INSERT INTO poison (uri, raw, reason) SELECT uri, convert_to(raw::text, 'UTF8'), 'a bug' FROM activities WHERE uri = $1`, posts[4])
	for _, q := range []string{`DELETE FROM feed WHERE activity_uri = $1`, `DELETE FROM activities WHERE uri = $1`} {
		ill.Column(t, q, posts[4])
	}
	if l := inboxList(t, i, "olaf"); l.Poison != 1 || len(l.Items) != 1 || l.Items[0].State != "poison" || l.Items[0].Reason != "a bug" {
		t.Errorf("inbox list wrote %+v, want one that was set aside", l)
	}
	var r struct {
		Matched, Retried int
		DryRun           bool `json:"dry_run"`
	}
	i.Run(t, "inbox", "retry", "--all", "--dry-run", "--json").Decode(t, &r)
	if r.Matched != 1 || r.Retried != 0 || !r.DryRun {
		t.Errorf("inbox retry --dry-run --json wrote %+v", r)
	}
	i.Run(t, "inbox", "retry", "olaf", "--json").Decode(t, &r)
	if r.Matched != 1 || r.Retried != 1 || r.DryRun {
		t.Errorf("inbox retry --json wrote %+v", r)
	}
	enginetest.Eventually(t, "the engine notices", func() bool {
		return len(ill.Column(t, `SELECT uri FROM activities WHERE uri = $1`, posts[4])) == 1
	})
}

func TestMoreThanAPageIsDropped(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	rita := i.CreateUser(t, "rita")
	const n = 250
	rita.Column(t, `INSERT INTO poison (uri, raw, reason, created_at) SELECT 'https://peer.example/' || i, '{}', 'a bug', now() - i % 7 * interval '1 minute'
		FROM generate_series(1, 250) i RETURNING ''`)
	for _, tt := range []struct {
		args []string
		left int
	}{{[]string{"--activity", "https://peer.example/7"}, n - 1}, {[]string{"--dry-run"}, n - 1}, {nil, 0}} {
		ran := i.Run(t, append([]string{"inbox", "drop", "rita", "--state", "poison", "--yes", "-q"}, tt.args...)...)
		if l := inboxList(t, i, "rita"); ran.Code != 0 || l.Poison != tt.left {
			t.Errorf("inbox drop %q ended with %d and leaves %d, want %d\n%s", tt.args, ran.Code, l.Poison, tt.left, ran.Stderr)
		}
	}
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}
