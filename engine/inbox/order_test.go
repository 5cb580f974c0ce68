package inbox_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// mention returns a note by dave that names alice and bob. dave has no follower here.
func mention(n int, content string) string { return byDave(note(n, content)) }

func correction(n int, content string) string { return byDave(edit(n, content)) }

// toAlice changes a note so that it names only alice and needs no journal.
func toAlice(body string) string {
	return strings.Replace(byDave(body), `,"us:/users/bob"`, "", 1)
}

func byDave(body string) string {
	body = strings.ReplaceAll(body, "p:/carol", "p:/dave")
	return strings.Replace(body, `"to":"as:Public"`, `"to":["as:Public","us:/alice","us:/users/bob"]`, 1)
}

// take sends a body of dave's or carol's and does not wait for its effects.
func take(ctx context.Context, s *peertest.Scene, to, body string) error {
	from := "p:/carol"
	if strings.Contains(body, "p:/dave") {
		from = "p:/dave"
	}
	u, _ := s.Local.InboxOwner(s.ID(to))
	return s.Inbox.Receive(ctx, s.Request(from, to, body), []byte(s.Long(body)), u)
}

// giveBack puts an activity of carol's into the journal for a user, as an administrator's retry
// does. The row is older than all later activities. Once the activity is applied, the user's drain
// has run.
func giveBack(t *testing.T, s *peertest.Scene, body string) {
	t.Helper()
	a, err := vocab.ParseActivity([]byte(s.Long(body)))
	if err != nil {
		t.Fatal(err)
	}
	in := instance.Intake{Key: instance.KeyOf(a.ID, a.Actor), Raw: a.Raw, Fetched: []byte(`{}`), Waiting: []vocab.Username{s.Alice}, Named: []vocab.Username{s.Alice}}
	if err := s.Store.Instance.Journal.Resubmit(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// obstruct keeps a user's writer from committing until the test takes the database away.
func obstruct(t *testing.T, s *peertest.Scene) {
	t.Helper()
	conn, err := s.DB(t, s.Alice).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), `SET application_name = 'obstruction'; BEGIN; LOCK TABLE seen`); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // may fail, because the connection is dead
}

// stall blocks every transaction that stores an activity of the type kind in the user's database,
// until release() is called.
func stall(t *testing.T, s *peertest.Scene, kind string) (release func()) {
	t.Helper()
	if _, err := s.DB(t, s.Alice).Exec(`CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END $$;
		CREATE TRIGGER stall BEFORE INSERT ON activities FOR EACH ROW WHEN (NEW.type = '` + kind + `') EXECUTE FUNCTION stall()`); err != nil {
		t.Fatal(err)
	}
	return dbtest.Hold(t, s.DB(t, s.Alice), `SELECT pg_advisory_xact_lock(4711)`)
}

// stallJournal keeps the journal from storing an activity until release() is called.
func stallJournal(t *testing.T, s *peertest.Scene, body string) (release func()) {
	t.Helper()
	a, err := vocab.ParseActivity([]byte(s.Long(body)))
	if err != nil {
		t.Fatal(err)
	}
	key := instance.KeyOf(a.ID, a.Actor)
	return dbtest.Hold(t, s.SQL(t), `INSERT INTO intake (uri_digest, actor_digest, raw, recipients) VALUES ($1, $2, '{}', '{}')`, key.URI[:], key.Actor[:])
}

// sending sends an activity in the background. It returns a channel that receives the answer.
func sending(s *peertest.Scene, to, body string) chan error {
	answer := make(chan error, 1)
	go func() { answer <- take(context.Background(), s, to, body) }()
	return answer
}

// answered waits for answers and checks that each is a 202.
func answered(t *testing.T, answers ...chan error) {
	t.Helper()
	for _, a := range answers {
		if err := <-a; err != nil {
			t.Error(err)
		}
	}
}

// blocked waits until n connections to the instance database wait for a lock.
func blocked(t *testing.T, s *peertest.Scene, n int) {
	t.Helper()
	eventually(t, "the journal is waited for", func() bool {
		var waits int
		if err := s.SQL(t).QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
		return waits >= n
	})
}

// edited waits until no activity is pending, and checks that a user has the given notes.
func edited(t *testing.T, s *peertest.Scene, notes ...string) {
	t.Helper()
	settled(t, s)
	eventually(t, "nothing is in memory", func() bool { return s.Inbox.Waiting() == 0 })
	if got := contents(t, s); !slices.Equal(got, notes) {
		t.Errorf("there is %q, want %q", got, notes)
	}
}

// A post waits in memory and is not in the journal, but the journal already has the post's edit. A
// drain does not apply activities that are newer than the post.
func TestADrainTakesNothingNewerThanWhatIsQueued(t *testing.T) {
	alice, bob := two(t)
	obstruct(t, bob)
	if err := take(t.Context(), alice, shared, mention(1, "first")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "alice has it", func() bool { return len(created(t, alice)) == 1 })
	alice.Instance(t, `DO $$ BEGIN EXECUTE 'ALTER TABLE intake_waiting ADD CONSTRAINT ill CHECK (seq <> ' || (SELECT max(seq) FROM intake) || ')'; END $$`)
	bob.Down(t, bob.Alice)
	eventually(t, "bob is parked", func() bool { return bob.Inbox.Stalled(bob.Alice) })
	giveBack(t, bob, note(0, "given back"))
	if err := take(t.Context(), alice, shared, correction(1, "second")); err != nil {
		t.Fatal(err)
	}
	bob.Up(t, bob.Alice)
	eventually(t, "bob's drain is at work", func() bool { return len(created(t, bob)) > 0 })
	alice.Instance(t, `ALTER TABLE intake_waiting DROP CONSTRAINT ill`)
	edited(t, bob, "given back", "second")
}

// The post came to alice's own inbox and is not in the journal. Its edit is in the journal and has
// a lower number than the post. The engine still applies the post first.
func TestWhatWaitedInMemoryKeepsItsPlaceInTheJournal(t *testing.T) {
	alice, _ := two(t)
	obstruct(t, alice)
	post := sending(alice, mine, toAlice(note(0, "first")))
	waiting(t, alice, 1)
	if err := take(t.Context(), alice, shared, correction(0, "second")); err != nil {
		t.Fatal(err)
	}
	alice.Down(t, alice.Alice)
	eventually(t, "both wait in the journal", func() bool { return journal(t, alice).Waiting == 2 })
	answered(t, post)
	alice.Up(t, alice.Alice)
	edited(t, alice, "second")
}

// The writer refuses the post. When the post's edit arrives, the post is not in the journal. The
// engine still applies the post first.
func TestWhatComesToAParkedUserKeepsItsPlace(t *testing.T) {
	alice, _ := two(t)
	alice.Down(t, alice.Alice)
	giveBack(t, alice, note(1, "given back"))
	if err := alice.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	release := stallJournal(t, alice, toAlice(note(0, "first")))
	post := sending(alice, mine, toAlice(note(0, "first")))
	blocked(t, alice, 1)
	if err := take(t.Context(), alice, mine, toAlice(edit(0, "second"))); err != nil {
		t.Fatal(err)
	}
	alice.Up(t, alice.Alice)
	eventually(t, "alice's drain is at work", func() bool { return len(created(t, alice)) > 0 })
	release()
	answered(t, post)
	edited(t, alice, "second", "given back")
}

// The journal is slow to store the first post, which is for several users. The second post is for
// alice alone and needs no journal. It still waits for the first.
func TestWhatNeedsNoJournalWaitsForWhatDoes(t *testing.T) {
	alice, bob := two(t)
	release := stallJournal(t, alice, mention(0, "first"))
	first := sending(alice, shared, mention(0, "first"))
	blocked(t, alice, 1)
	second := sending(alice, mine, toAlice(note(1, "second")))
	waiting(t, alice, 3)
	release()
	answered(t, first, second)
	edited(t, alice, "first", "second")
	edited(t, bob, "first")
	if got := created(t, alice); !slices.Equal(got, numbers(2)) {
		t.Errorf("alice was told of %q, want the order of arrival", got)
	}
}

// An administrator gave an activity back to alice, so her activities wait for a drain while her
// writer still commits a post. The post's edit waits until the post is committed.
func TestADrainWaitsForTheWriter(t *testing.T) {
	alice, _ := two(t)
	release := stall(t, alice, "Create")
	post := sending(alice, mine, toAlice(note(0, "first")))
	waiting(t, alice, 1)
	eventually(t, "the writer is committing", func() bool {
		return alice.Column(t, alice.Alice, `SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)[0] != "0"
	})
	giveBack(t, alice, `{"id":"p:/listens/1","type":"Listen","actor":"p:/carol"}`)
	if err := alice.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	update := sending(alice, mine, toAlice(edit(0, "second")))
	eventually(t, "alice's drain is at work", func() bool {
		return len(alice.Column(t, alice.Alice, `SELECT uri FROM activities WHERE type = 'Listen'`)) == 1
	})
	eventually(t, "the edit is answered or in the journal", func() bool { return len(update) == 1 || journal(t, alice).Waiting == 1 })
	release()
	answered(t, post, update)
	edited(t, alice, "second")
}

// A drain does not wait for a request that gave up while its user was stalled.
func TestWhoGivesUpHoldsNoPlace(t *testing.T) {
	alice, _ := two(t)
	obstruct(t, alice)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() { answer <- take(ctx, alice, mine, toAlice(note(0, "first"))) }()
	waiting(t, alice, 1)
	cancel()
	if err := <-answer; err == nil {
		t.Error("the request that gave up was answered 202")
	}
	alice.Down(t, alice.Alice)
	eventually(t, "alice is parked", func() bool { return alice.Inbox.Stalled(alice.Alice) })
	alice.MustSend("p:/carol", mine, note(1, "second"))
	alice.Up(t, alice.Alice)
	settled(t, alice)
	if got := created(t, alice); !slices.Contains(got, "001") {
		t.Errorf("alice got %q, want what came after", strings.Join(got, " "))
	}
}
