package inbox_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/proof"
	"github.com/lightweb/lightweb/engine/vocab"
)

// two starts a scene with alice and bob, who both follow carol.
func two(t *testing.T, change ...func(*inbox.Deps)) (alice, bob *peertest.Scene) {
	t.Helper()
	alice = newScene(t, change...)
	alice.Inbox.Backoff(5*time.Millisecond, 50*time.Millisecond)
	bob = alice.With("bob")
	alice.Follows("p:/carol")
	bob.Act("p:/carol", `{"id":"us:/alice/activities/f","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)
	bob.MustSend("p:/carol", mine, `{"id":"p:/accepts/bob","type":"Accept","actor":"p:/carol","object":"us:/alice/activities/f"}`)
	return alice, bob
}

// patience is the time that tests give to the inbox's own work. It suffices to drain a journal of
// 48 MiB on a busy machine, even with the race detector.
const patience = 2 * time.Minute

// eventually waits until is() returns true. It fails the test if that takes longer than patience.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, limit := time.NewTicker(2*time.Millisecond), time.NewTimer(patience)
	defer tick.Stop()
	defer limit.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("never came true: %s", what)
		}
	}
}

// journal returns how many rows the journal has, and how many users wait for them.
func journal(t *testing.T, s *peertest.Scene) (n instance.IntakeCounts) {
	t.Helper()
	n, err := s.Store.Instance.Journal.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// settled waits until the journal is empty and no user is stalled.
func settled(t *testing.T, scenes ...*peertest.Scene) {
	t.Helper()
	for _, s := range scenes {
		eventually(t, "the journal is empty", func() bool { return !s.Inbox.Stalled(s.Alice) && journal(t, s).Rows == 0 })
	}
}

func note(n int, content string) string {
	return fmt.Sprintf(`{"id":"p:/creates/%03[1]d","type":"Create","actor":"p:/carol","to":"as:Public","object":{"id":"p:/notes/%03[1]d","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":%[2]q}}`, n, content)
}

func edit(n int, content string) string {
	return fmt.Sprintf(`{"id":"p:/updates/%03[1]d/%[2]s","type":"Update","actor":"p:/carol","to":"as:Public","object":{"id":"p:/notes/%03[1]d","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":%[2]q,"updated":%[3]q}}`,
		n, content, time.Now().UTC().Format(time.RFC3339Nano))
}

func contents(t *testing.T, s *peertest.Scene) []string {
	t.Helper()
	return s.Column(t, s.Alice, `SELECT raw ->> 'content' FROM objects WHERE raw ->> 'type' = 'Note' ORDER BY uri`)
}

// created returns the notes for which a user got an event, in order.
func created(t *testing.T, s *peertest.Scene) []string {
	t.Helper()
	return s.Column(t, s.Alice, `SELECT right(payload ->> 'activityUri', 3) FROM event_outbox WHERE type = 'create.received' ORDER BY seq`)
}

func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%03d", i))
	}
	return all
}

func TestAUserWhoseDatabaseCannotBeUsedGetsEverythingLater(t *testing.T) {
	ways := map[string]func(*testing.T, *peertest.Scene) (mend func()){
		"down": func(t *testing.T, s *peertest.Scene) func() {
			s.Down(t, s.Alice)
			return func() { s.Up(t, s.Alice) }
		},
		"dirty": func(t *testing.T, s *peertest.Scene) func() {
			s.Column(t, s.Alice, `UPDATE schema_migrations SET dirty = true RETURNING ''`)
			dbtest.EndConnections(t, s.DB(t, s.Alice))
			return func() { s.Column(t, s.Alice, `UPDATE schema_migrations SET dirty = false RETURNING ''`) }
		},
		"renamed away": func(t *testing.T, s *peertest.Scene) func() {
			rename(t, s, "%[1]s", "%[1]s-away")
			return func() { rename(t, s, "%[1]s-away", "%[1]s") }
		},
		"losing every transaction": func(t *testing.T, s *peertest.Scene) func() {
			return dbtest.FailInserts(t, s.DB(t, s.Alice), "activities", "40P01")
		},
	}
	for name, breaks := range ways {
		t.Run(name, func(t *testing.T) {
			alice, bob := two(t)
			mend := breaks(t, bob)
			bob.Unable(bob.Alice)
			const all = 30
			for n := range all {
				to := shared // one row of the journal for both users
				if n%3 == 1 {
					to = strings.Replace(mine, "us:/alice", string(bob.ID("us:/alice")), 1) // bob's own inbox
				}
				alice.MustSend("p:/carol", to, note(n, "first"))
				if to != shared {
					alice.MustSend("p:/carol", mine, note(n, "first"))
				}
			}
			alice.MustSend("p:/carol", shared, edit(3, "second"))
			alice.MustSend("p:/carol", shared, `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","object":"p:/notes/004","to":"as:Public"}`)
			if got := created(t, alice); !slices.Equal(got, numbers(all)) {
				t.Errorf("while bob cannot take anything alice got %q, want all", got)
			}
			if !bob.Inbox.Stalled(bob.Alice) {
				t.Error("bob is not parked")
			}
			mend()
			bob.Able(bob.Alice)
			settled(t, bob)
			if got := created(t, bob); !slices.Equal(got, numbers(all)) {
				t.Errorf("bob got %q, want all once and in order", got)
			}
			// the administrator deletes one of the rows
			want := slices.Repeat([]string{"first"}, all-1)
			want[3] = "second"
			if got := contents(t, bob); !slices.Equal(got, want) {
				t.Errorf("bob has %q, want %q", got, want)
			}
			alice.MustSend("p:/carol", shared, note(all, "last"))
			for _, s := range []*peertest.Scene{alice, bob} {
				if got := created(t, s); !slices.Equal(got, numbers(all+1)) {
					t.Errorf("afterwards there is %q, want all and one more", got)
				}
			}
		})
	}
}

// rename renames a user's database. In the parameters from and to, %[1]s stands for the original
// name.
func rename(t *testing.T, s *peertest.Scene, from, to string) {
	t.Helper()
	row, err := s.Store.Instance.Users.Find(t.Context(), s.Alice)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '` + row.Database + `'`,
		fmt.Sprintf(`ALTER DATABASE "`+from+`" RENAME TO "`+to+`"`, row.Database),
	} {
		if _, err := s.SQL(t).Exec(q); err != nil {
			t.Fatal(err)
		}
	}
}

// While neither bob's database nor the journal can be written, accepted activities stay in memory.
// They leave it once one of the two can be written.
func TestNothingIsLostWhenTheJournalCannotBeWrittenEither(t *testing.T) {
	alice, bob := two(t)
	obstruct(t, bob)
	for n := range 20 {
		if err := accept(alice, shared, note(n, "hi")); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "alice has all", func() bool { return len(created(t, alice)) == 20 })
	alice.Instance(t, `ALTER TABLE intake_waiting ADD CONSTRAINT ill CHECK (seq < 0)`)
	bob.Down(t, bob.Alice)
	eventually(t, "bob is parked", func() bool { return bob.Inbox.Stalled(bob.Alice) })
	if got := bob.Inbox.Waiting(); got != 20 {
		t.Errorf("%d are in memory, want 20", got)
	}
	alice.Instance(t, `ALTER TABLE intake_waiting DROP CONSTRAINT ill`)
	eventually(t, "all wait in the journal", func() bool { return bob.Inbox.Waiting() == 0 && journal(t, bob).Waiting == 20 })
	if n, bytes := bob.Inbox.Backlog(bob.Alice); n != 20 || bytes == 0 {
		t.Errorf("%d wait with %d bytes as far as is counted, want all 20", n, bytes)
	}
	bob.Up(t, bob.Alice)
	settled(t, bob)
	if got := created(t, bob); !slices.Equal(got, numbers(20)) {
		t.Errorf("bob got %q, want all once and in order", got)
	}
}

// accept sends an activity and does not wait for its effects.
func accept(s *peertest.Scene, to, body string) error {
	u, _ := s.Local.InboxOwner(s.ID(to))
	return s.Inbox.Receive(context.Background(), s.Request("p:/carol", to, body), []byte(s.Long(body)), u)
}

func TestTheSameActivityAtBothInboxesTakesEffectOnce(t *testing.T) {
	alice, bob := two(t)
	body := note(0, "hi")
	var all sync.WaitGroup
	for n := range 50 {
		to := []string{shared, mine}[n%2]
		r := alice.Request("p:/carol", to, body)
		all.Go(func() {
			if err := alice.Receive(r, to, body); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	settled(t, alice, bob)
	for _, s := range []*peertest.Scene{alice, bob} {
		if got := created(t, s); len(got) != 1 {
			t.Errorf("events: %q, want one", got)
		}
		if got := contents(t, s); len(got) != 1 {
			t.Errorf("notes: %q, want one", got)
		}
	}
	if n := alice.Inbox.Held(); n != 0 {
		t.Errorf("%d bytes are held at the end, want none", n)
	}
}

// An activity arrives several times while its recipients' databases are away. The journal gets one
// row for it. Each arrival adds its recipients to the row.
func TestOneRowForOneActivity(t *testing.T) {
	alice, bob := two(t)
	alice.Down(t, alice.Alice)
	bob.Down(t, bob.Alice)
	body := `{"id":"p:/listens/1","type":"Listen","actor":"p:/carol","to":"p:/carol/followers"}`
	alice.Actor("p:/carol")
	for _, to := range []string{mine, shared, string(bob.ID(mine)), shared} {
		alice.MustSend("p:/carol", to, strings.Replace(body, "p:/carol/followers", "as:Public", 1))
	}
	if n := journal(t, alice); n.Rows != 1 || n.Waiting != 2 {
		t.Errorf("the journal holds %+v, want one row for which two wait", n)
	}
	alice.Up(t, alice.Alice)
	bob.Up(t, bob.Alice)
	settled(t, alice, bob)
	for _, s := range []*peertest.Scene{alice, bob} {
		if got := s.Column(t, s.Alice, `SELECT uri FROM activities WHERE type = 'Listen'`); len(got) != 1 {
			t.Errorf("activities: %q, want one", got)
		}
	}
}

func TestANewProcessTakesOverTheJournal(t *testing.T) {
	alice, bob := two(t)
	holds := []func(){hold(t, alice), hold(t, bob)}
	const all = 25
	for n := range all {
		if err := accept(alice, shared, note(n, "first")); err != nil {
			t.Fatal(err)
		}
	}
	if n := journal(t, alice); n.Rows != all || n.Waiting != 0 {
		t.Fatalf("the journal holds %+v, want %d rows in writers' hands", n, all)
	}
	next := inbox.New(alice.Deps) // the first inbox is idle, because it waits for locks
	if err := next.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := next.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	update := edit(0, "second")
	if err := next.Receive(t.Context(), alice.Request("p:/carol", mine, update), []byte(alice.Long(update)), alice.Alice); err != nil {
		t.Fatal(err) // the edit queues behind the rows in the journal
	}
	for _, release := range holds {
		release()
	}
	eventually(t, "the journal is empty", func() bool { return journal(t, alice).Rows == 0 })
	for _, s := range []*peertest.Scene{alice, bob} {
		if got := created(t, s); !slices.Equal(got, numbers(all)) {
			t.Errorf("events: %q, want all once and in order", got)
		}
	}
	if got := contents(t, alice); got[0] != "second" {
		t.Errorf("alice has %q, want the update to have come after the post", got[0])
	}
}

func TestCloseLeavesToTheJournalWhatLiesThere(t *testing.T) {
	alice, bob := two(t)
	release := hold(t, bob)
	const all = 250
	for n := range all {
		if err := accept(alice, shared, note(n, "hi")); err != nil {
			t.Fatal(err)
		}
	}
	closed := make(chan error)
	go func() { closed <- alice.Inbox.Close(context.Background()) }()
	eventually(t, "nothing more is taken", func() bool { return fault.KindOf(accept(alice, shared, note(0, "hi"))) == fault.Unavailable })
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if n := journal(t, bob); n.Rows == 0 {
		t.Error("the journal is empty, want what bob's writer had not begun")
	}
	next := inbox.New(alice.Deps)
	if err := next.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the journal is empty", func() bool { return journal(t, bob).Rows == 0 })
	if err := next.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := created(t, bob); !slices.Equal(got, numbers(all)) {
		t.Errorf("bob got %d, want %d once and in order", len(got), all)
	}
}

func TestWhatComesDirectlyKeepsItsPlaceBehindTheJournal(t *testing.T) {
	alice, _ := two(t)
	release := hold(t, alice)
	if err := accept(alice, shared, note(0, "first")); err != nil {
		t.Fatal(err)
	}
	answer := make(chan error)
	update := edit(0, "second")
	r := alice.Request("p:/carol", mine, update)
	go func() { answer <- alice.Receive(r, mine, update) }()
	eventually(t, "the update is queued", func() bool { return alice.Inbox.Waiting() >= 2 })
	release()
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	if got := contents(t, alice); !slices.Equal(got, []string{"second"}) {
		t.Errorf("alice has %q, want the update", got)
	}
}

// Tend takes up a row that was written although the write returned an error. It also takes up a
// row that an administrator put back.
func TestRowsThatNobodyToldOfAreTakenUp(t *testing.T) {
	alice, bob := two(t)
	raw := alice.Long(note(0, "hi"))
	a, err := vocab.ParseActivity([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	in := instance.Intake{Key: instance.KeyOf(a.ID, a.Actor), Raw: a.Raw, Fetched: []byte(`{}`), Recipients: []vocab.Username{alice.Alice}, Waiting: []vocab.Username{bob.Alice}}
	if err := alice.Store.Instance.Journal.Resubmit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := alice.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	settled(t, alice, bob)
	for _, s := range []*peertest.Scene{alice, bob} {
		if got := created(t, s); len(got) != 1 {
			t.Errorf("events: %q, want one", got)
		}
	}
}

func TestWhatCannotBeReadAgainIsSetAside(t *testing.T) {
	alice, bob := two(t)
	bob.Down(t, bob.Alice)
	alice.MustSend("p:/carol", shared, note(0, "hi"))
	alice.Instance(t, `UPDATE intake SET raw = '{"id":"'||'https://p.example/1'||'","type":'`)
	alice.MustSend("p:/carol", shared, note(1, "hi"))
	bob.Up(t, bob.Alice)
	settled(t, bob)
	if got := bob.Column(t, bob.Alice, `SELECT uri FROM poison WHERE reason <> ''`); len(got) != 1 {
		t.Errorf("set aside: %q, want one", got)
	}
	if got := created(t, bob); !slices.Equal(got, []string{"001"}) {
		t.Errorf("bob got %q, want the other one", got)
	}
}

// When the inbox applies an activity that waited, it fetches nothing again.
func TestWhatWasFetchedWaitsToo(t *testing.T) {
	alice, bob := two(t)
	alice.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve","to":"as:Public","content":"boosted"}`)
	bob.Down(t, bob.Alice)
	alice.MustSend("p:/carol", shared, `{"id":"p:/boosts/1","type":"Announce","actor":"p:/carol","to":"as:Public","object":"q:/notes/1"}`)
	asked := alice.Asked("q:/notes/1")
	bob.Up(t, bob.Alice)
	settled(t, bob)
	if got := contents(t, bob); !slices.Equal(got, []string{"boosted"}) || alice.Asked("q:/notes/1") != asked {
		t.Errorf("bob has %q and its server was asked %d times more, want the note and never", got, alice.Asked("q:/notes/1")-asked)
	}
}

func TestAProcessThatLostTheInstanceChangesNothing(t *testing.T) {
	alice, bob := two(t)
	release := hold(t, bob)
	defer release()
	if err := accept(alice, shared, note(0, "hi")); err != nil {
		t.Fatal(err)
	}
	alice.Instance(t, `UPDATE serving SET epoch = epoch + 1`)
	if err := accept(alice, shared, note(1, "hi")); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("err = %v, want Unavailable", err)
	}
	release()
	eventually(t, "bob has it", func() bool { return len(created(t, bob)) == 1 && bob.Inbox.Waiting() == 0 })
	if err := alice.Inbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := journal(t, bob); n.Rows != 1 {
		t.Errorf("the journal holds %+v, want the row as it was: it is the other process's", n)
	}
}

func TestNoMoreBytesWaitThanMay(t *testing.T) {
	alice, bob := two(t)
	alice.Inbox.Limit(1000, 2000)
	release := hold(t, bob)
	var err error
	taken := 0
	for ; err == nil && taken < 100; taken++ {
		err = accept(alice, shared, note(taken, strings.Repeat("x", 500)))
	}
	if fault.KindOf(err) != fault.Unavailable || fault.Of(err).RetryAfter == 0 || taken > 5 {
		t.Errorf("after %d the answer is %v, want Unavailable with a time to wait soon", taken, err)
	}
	release()
	eventually(t, "all is let go of", func() bool { return bob.Inbox.Held() == 0 })
	alice.MustSend("p:/carol", shared, note(taken, "hi"))
}

func TestTheJournalIsMeasured(t *testing.T) {
	metrics := prometheus.NewRegistry()
	alice, bob := two(t, func(d *inbox.Deps) { d.Metrics = metrics })
	bob.Down(t, bob.Alice)
	for n := range 3 {
		alice.MustSend("p:/carol", shared, note(n, "hi"))
	}
	if err := alice.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	want := `
		# HELP lightweb_inbox_journal_rows Activities in the intake journal.
		# TYPE lightweb_inbox_journal_rows gauge
		lightweb_inbox_journal_rows 3
		# HELP lightweb_inbox_parked_users Users who cannot take what comes, or are still taking what came meanwhile.
		# TYPE lightweb_inbox_parked_users gauge
		lightweb_inbox_parked_users 1
		# HELP lightweb_inbox_waiting Activities that wait for a user each: queued in memory, or parked in the intake journal.
		# TYPE lightweb_inbox_waiting gauge
		lightweb_inbox_waiting{state="parked"} 3
		lightweb_inbox_waiting{state="queued"} 0
	`
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "lightweb_inbox_journal_rows", "lightweb_inbox_parked_users", "lightweb_inbox_waiting"); err != nil {
		t.Error(err)
	}
	bob.Up(t, bob.Alice)
	settled(t, bob)
}

func TestAJournalThatCannotBeReadIsNotMeasured(t *testing.T) {
	metrics := prometheus.NewRegistry()
	alice, bob := two(t, func(d *inbox.Deps) { d.Metrics = metrics })
	bob.Down(t, bob.Alice)
	alice.MustSend("p:/carol", shared, note(0, "hi"))
	gauges := []string{"lightweb_inbox_journal_rows", "lightweb_inbox_journal_oldest_seconds", "lightweb_inbox_waiting", "lightweb_inbox_parked_users"}
	shows := func(readable bool, want int) {
		t.Helper()
		if err := alice.Inbox.Tend(); (err == nil) != readable {
			t.Errorf("the journal is looked after: %v", err)
		}
		if n, err := testutil.GatherAndCount(metrics, gauges...); n != want || err != nil {
			t.Errorf("%d gauges, %v, want %d", n, err, want)
		}
	}
	shows(true, 5)
	alice.Instance(t, `ALTER TABLE intake RENAME TO intake_away`)
	shows(false, 2) // two gauges of memory: queued activities, and stalled users
	alice.Instance(t, `ALTER TABLE intake_away RENAME TO intake`)
	shows(true, 5)
	bob.Up(t, bob.Alice)
	settled(t, bob)
}

// The engine drops an activity that waits for a user who is then deleted.
func TestNothingWaitsForAUserWhoIsDeleted(t *testing.T) {
	alice, bob := two(t)
	bob.Down(t, bob.Alice)
	alice.MustSend("p:/carol", shared, note(0, "hi"))
	alice.Instance(t, `UPDATE users SET state = 'deleted' WHERE username = 'bob'`)
	settled(t, bob)
}

// A Move to an account that does not exist on this server does not delay the user's later
// activities.
func TestAMoveToNobodyHereHoldsNobodyUp(t *testing.T) {
	alice, bob := two(t)
	bob.Down(t, bob.Alice)
	alice.MustSend("p:/carol", shared, `{"id":"p:/moves/1","type":"Move","actor":"p:/carol","object":"p:/carol","target":"us:/alice/nobody"}`)
	alice.MustSend("p:/carol", shared, note(0, "hi"))
	bob.Up(t, bob.Alice)
	settled(t, bob)
	if got := created(t, bob); !slices.Equal(got, numbers(1)) {
		t.Errorf("bob got %q, want what came behind the Move", got)
	}
}

// When an activity that waited for long causes a delivery, the delivery's age counts from the time
// when the activity was applied.
func TestAnAnswerToWhatWaitedIsOwedFromWhenItIsGiven(t *testing.T) {
	alice, bob := two(t)
	bob.Down(t, bob.Alice)
	alice.MustSend("p:/dave", strings.Replace(mine, "us:/alice", string(bob.ID("us:/alice")), 1),
		`{"id":"p:/follows/1","type":"Follow","actor":"p:/dave","object":"`+string(bob.ID("us:/alice"))+`"}`)
	alice.Instance(t, `UPDATE intake SET received_at = received_at - interval '9 days'`)
	bob.Up(t, bob.Alice)
	settled(t, bob)
	if got := bob.Column(t, bob.Alice, `SELECT j.type FROM delivery_jobs j JOIN deliveries d ON d.job_id = j.id
		WHERE j.type = 'Accept' AND d.created_at > now() - interval '1 day'`); len(got) != 1 {
		t.Errorf("owed since today: %q, want the Accept", got)
	}
}

// FE-06: the engine sends no Accept that it cannot sign. While the user's keys cannot be read, a
// Follow waits for its Accept.
func TestAFollowThatCannotBeAnsweredNowIsAnsweredLater(t *testing.T) {
	s := newScene(t)
	s.Inbox.Backoff(5*time.Millisecond, 50*time.Millisecond)
	keys := s.Keys.Dir(s.Alice)
	if err := os.Rename(keys, keys+"-away"); err != nil {
		t.Fatal(err)
	}
	s.Unable(s.Alice)
	expect(t, s, nil, accepted, func() error { return s.Send("p:/carol", mine, follow) })
	if !s.Inbox.Stalled(s.Alice) {
		t.Error("alice is not parked")
	}
	if err := os.Rename(keys+"-away", keys); err != nil {
		t.Fatal(err)
	}
	settled(t, s)
	sent := s.Column(t, s.Alice, `SELECT convert_from(body, 'UTF8') FROM delivery_jobs`)
	if len(sent) != 1 {
		t.Fatalf("owed: %q, want the Accept", sent)
	}
	d, err := vocab.ParseDoc([]byte(sent[0]))
	if err != nil {
		t.Fatal(err)
	}
	p, err := proof.Parse(d, s.Now())
	if err != nil || p == nil || p.Method != s.ID("us:/alice#ed25519-key") {
		t.Fatalf("the proof of %s is %+v, %v", sent[0], p, err)
	}
	pair, err := s.Keys.Keys(s.Alice)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Verify(pair.Ed25519.Private.Public().(ed25519.PublicKey)); err != nil {
		t.Error(err)
	}
}

// Some servers send every Follow under one id, and some every Undo of it. One that waits takes
// effect again if it was signed after the follow had changed. If the journal does not have the time
// of the signature, the follow must have changed long before it arrived.
func TestAFollowThatComesAgainMayWait(t *testing.T) {
	alice, bob := two(t)
	me := string(bob.ID("us:/alice"))
	inbox := strings.Replace(mine, "us:/alice", me, 1)
	follows := `{"id":"p:/follows/1","type":"Follow","actor":"p:/dave","object":"` + me + `"}`
	request := alice.Request("p:/dave", inbox, follows)
	if err := alice.Receive(request, inbox, follows); err != nil {
		t.Fatal(err)
	}
	undoes := `{"id":"p:/undos/1","type":"Undo","actor":"p:/dave","object":` + follows + `}`
	alice.Later(2 * time.Second)
	alice.MustSend("p:/dave", inbox, undoes)
	const unknown = `UPDATE intake SET signed_at = NULL, received_at = received_at + interval `
	for _, wait := range []struct {
		name, body, change string
		anew               bool // whether it is signed anew
		want               int
	}{
		{"the first Follow once more", follows, "", false, 0},
		{"the second Follow", follows, "", true, 1},
		{"the second Undo", undoes, "", true, 0},
		{"a Follow of an unknown time", follows, unknown + `'0 hours'`, true, 0},
		{"a Follow of an unknown time, hours later", follows, unknown + `'3 hours'`, true, 1},
	} {
		bob.Down(t, bob.Alice)
		alice.Later(2 * time.Second)
		sent := request
		if wait.anew {
			sent = alice.Request("p:/dave", inbox, wait.body)
		}
		if err := alice.Receive(sent, inbox, wait.body); err != nil {
			t.Fatal(err)
		}
		if wait.change != "" {
			alice.Instance(t, wait.change)
		}
		bob.Up(t, bob.Alice)
		settled(t, bob)
		if got := bob.Column(t, bob.Alice, `SELECT actor_uri FROM relationships WHERE type = 'follower'`); len(got) != wait.want {
			t.Errorf("after %s the followers are %q, want %d", wait.name, got, wait.want)
		}
	}
}

// lines receives the lines of a log. It drops lines for which it has no room.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	select {
	case l <- string(line):
	default:
	}
	return len(line), nil
}

// After a restart, bob's database may be usable before the folder of the users' keys is mounted. A
// post of alice's waits for bob until the folder is mounted, because missing keys do not mean that
// alice is deleted.
func TestWhatWaitsFromALocalSenderWaitsForItsKeys(t *testing.T) {
	alice, bob := two(t)
	post := `{"id":"us:/alice/creates/000","type":"Create","actor":"us:/alice","to":["us:/bob","as:Public"],"object":{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice","to":["us:/bob","as:Public"],"content":"hi"}}`
	bob.Down(t, bob.Alice)
	if err := alice.Inbox.Deliver(t.Context(), alice.Alice, bob.Alice, []byte(alice.Long(strings.ReplaceAll(post, "us:/bob", bob.Long("us:/alice"))))); err != nil {
		t.Fatal(err)
	}
	if err := alice.Inbox.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	bob.Up(t, bob.Alice)
	keys := alice.Keys.Dir(alice.Alice)
	if err := os.Rename(keys, keys+"-away"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the keys are missing", func() bool { _, err := alice.Keys.Keys(alice.Alice); return err != nil })
	log := make(lines, 100)
	deps := alice.Deps
	deps.Log = slog.New(slog.NewTextHandler(log, nil))
	next := inbox.New(deps)
	next.Backoff(5*time.Millisecond, 50*time.Millisecond)
	if err := next.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := next.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "bob's journal is read", func() bool { return journal(t, bob).Rows == 0 || len(log) > 0 })
	if len(log) == 0 || !strings.Contains(<-log, "keys") {
		t.Error("the log does not tell that bob waits for keys")
	}
	if err := os.Rename(keys+"-away", keys); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the journal is empty", func() bool { return journal(t, bob).Rows == 0 })
	if got := contents(t, bob); !slices.Equal(got, []string{"hi"}) {
		t.Errorf("bob has %q, want alice's post", got)
	}
}
