package engine_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/enginetest"
)

// befriend makes f follow a.
func befriend(t *testing.T, f, a *enginetest.User) {
	t.Helper()
	f.Do(t, "Follow", map[string]any{"actorUri": a.ID})
	enginetest.Eventually(t, f.Name+" follows "+a.Name, func() bool {
		return slices.Equal(f.Column(t, `SELECT status FROM relationships WHERE type = 'following' AND actor_uri = $1`, a.ID), []string{"accepted"})
	})
}

func strangersPrivatePostWaits(t *testing.T, a, b *enginetest.Instance) {
	sender, receiver := a.CreateUser(t, "mallory"), b.CreateUser(t, "victor")
	private := map[string]any{"content": "you do not know me", "visibility": "direct", "to": []string{receiver.ID}}
	id := sender.Do(t, "CreateNote", private).ActivityID
	delivered(t, sender, id, false)
	receiver.Await(t, "requests", "the letter of a stranger", func(i enginetest.Item) bool { return i.ActivityURI == id })
	receiver.Do(t, "DeclineRequest", map[string]any{"activityId": id})
	if got := receiver.Column(t, `SELECT uri FROM activities WHERE direction = 'inbound'`); len(got) != 0 {
		t.Errorf("%s holds %q, want nothing of who was declined", receiver.Name, got)
	}
	letter := receiver.Do(t, "SendMessage", map[string]any{"recipientUri": sender.ID, "content": "and who are you?"}).ActivityID
	back := sender.Do(t, "Reply", map[string]any{"objectId": enginetest.ObjectOf(t, receiver, letter), "content": "a friend"}).ActivityID
	receiver.Await(t, "main", "the answer of who was written to", func(i enginetest.Item) bool { return i.ActivityURI == back })
	again := sender.Do(t, "CreateNote", private).ActivityID
	receiver.Await(t, "main", "a second letter of who was written to", func(i enginetest.Item) bool { return i.ActivityURI == again })

	other := a.CreateUser(t, "yvonne")
	first := other.Do(t, "CreateNote", private).ActivityID
	receiver.Await(t, "requests", "the letter of another stranger", func(i enginetest.Item) bool { return i.ActivityURI == first })
	accepted := receiver.Do(t, "AcceptRequest", map[string]any{"actorUri": other.ID}).ActivityID
	further := other.Do(t, "CreateNote", private).ActivityID
	for _, id := range []string{first, further} {
		receiver.Await(t, "main", "what was accepted", func(i enginetest.Item) bool { return i.ActivityURI == id })
	}
	if twice := receiver.Do(t, "AcceptRequest", map[string]any{"actorUri": other.ID}).ActivityID; twice != accepted {
		t.Errorf("accepted again it is %s, want the first answer %s", twice, accepted)
	}
	receiver.Configure(t, `{"messaging":{"allow_insecure_dm":true}}`)
	unknown := a.CreateUser(t, "walter")
	enginetest.Eventually(t, "whoever asks for letters gets them", func() bool {
		id := unknown.Do(t, "CreateNote", private).ActivityID
		delivered(t, unknown, id, false)
		return len(receiver.Column(t, `SELECT activity_uri FROM feed WHERE activity_uri = $1`, id)) == 1
	})
}

// A recipient's server does not answer, which costs one attempt. The sender is killed while it
// holds deliveries. It sends them after its next start.
func receiverThatIsAway(t *testing.T, a, b *enginetest.Instance) {
	reader, writer := b.CreateUser(t, "ivan"), a.CreateUser(t, "judy")
	befriend(t, reader, writer)
	b.Stop(t)
	id, _ := writer.Post(t, map[string]any{"content": "are you there?"})
	const owed = `SELECT d.status || ' ' || d.attempts || ' ' || (d.next_at - d.updated_at BETWEEN '50 seconds' AND '70 seconds') || ' ' || (d.lease_owner IS NULL)
		FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE j.activity_uri = $1`
	want := []string{"pending 1 true true"}
	var got []string
	enginetest.Eventually(t, "the first attempt fails", func() bool {
		got = writer.Column(t, owed, id)
		return len(got) == 1 && !strings.HasPrefix(got[0], "pending 0")
	})
	if !slices.Equal(got, want) {
		t.Errorf("after an attempt that failed the delivery is %q, want %q: pending, an attempt made, due in a minute, nobody's", got, want)
	}

	a.Kill()
	writer.Column(t, `UPDATE deliveries SET lease_owner = 'serve:killed', next_at = now() + interval '1 hour' WHERE status = 'pending'`)
	b.Start(t)
	a.Start(t)
	delivered(t, writer, id, false)
	if got := reader.Column(t, `SELECT count(*) FROM feed WHERE activity_uri = $1`, id); !slices.Equal(got, []string{"1"}) {
		t.Errorf("the post is %q times in the feed, want once", got)
	}
}

// A migration fails halfway in one user's database. Only that user becomes unavailable.
func dirtyDatabase(t *testing.T, a, b *enginetest.Instance) {
	ill, well, friend := a.CreateUser(t, "kate"), a.CreateUser(t, "liam"), b.CreateUser(t, "mona")
	befriend(t, ill, friend)
	ill.Column(t, `UPDATE schema_migrations SET dirty = true`)
	dbtest.EndConnections(t, ill.Home.SQL(t, "lightweb_"+ill.Name))
	const feed = "/api/feed?feed=main"
	var refused enginetest.Answer
	enginetest.Eventually(t, "the user is unavailable", func() bool {
		refused = ill.Ask(t, http.MethodGet, feed, nil)
		if refused.Status != http.StatusServiceUnavailable {
			t.Errorf("the feed of a dirty database was answered %d %s, want 503", refused.Status, refused.Body)
		}
		return strings.Contains(string(refused.Body), `"user_unavailable"`)
	})
	if refused.Header.Get("Retry-After") == "" || refused.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("the refusal has the header %v, want a problem with Retry-After", refused.Header)
	}
	if got := well.Ask(t, http.MethodGet, feed, nil); got.Status != http.StatusOK {
		t.Errorf("somebody else's feed was answered %d %s, want 200", got.Status, got.Body)
	}
	if got := enginetest.Fetch(t, ill.ID); got.Status != http.StatusOK {
		t.Errorf("the user's actor was answered %d, want 200: it needs no database", got.Status)
	}
	id, _ := friend.Post(t, map[string]any{"content": "get well"})
	delivered(t, friend, id, false) // the activity waits in the journal

	ill.Column(t, `UPDATE schema_migrations SET dirty = false`)
	enginetest.Eventually(t, "after the repair the feed is served", func() bool {
		return ill.Ask(t, http.MethodGet, feed, nil).Status == http.StatusOK
	})
	ill.Await(t, "main", "what came meanwhile", func(i enginetest.Item) bool { return i.ActivityURI == id })
}

// PostgreSQL is killed under a serving engine. The engine starts it again. Every activity that was
// accepted before or meanwhile exists afterwards, from local users and from the other engine.
func databaseServerThatDies(t *testing.T, a, b *enginetest.Instance) {
	here, there := a.CreateUser(t, "nina"), b.CreateUser(t, "oscar")
	befriend(t, here, there)
	var accepted []string
	write := func(n int) bool {
		answer := here.Try(t, "CreateNote", map[string]any{"content": fmt.Sprint("number ", n)})
		switch answer.Status {
		case http.StatusCreated:
			var d enginetest.Dispatched
			answer.Decode(t, &d)
			accepted = append(accepted, d.ActivityID)
			return true
		case http.StatusServiceUnavailable:
			if answer.Header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("the refusal is %q, want a problem", answer.Header.Get("Content-Type"))
			}
		default:
			t.Errorf("without a database a post was answered %d %s, want 503", answer.Status, answer.Body)
		}
		return false
	}
	for n := range 5 {
		write(n)
		there.Post(t, map[string]any{"content": fmt.Sprint("before ", n)})
	}
	pid := a.Postmaster()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		there.Post(t, map[string]any{"content": fmt.Sprint("after ", n)})
	}
	enginetest.Eventually(t, "PostgreSQL is a new process", func() bool { now := a.Postmaster(); return now != 0 && now != pid })
	enginetest.Eventually(t, "the database is back", func() bool { return write(5) })
	if !a.Running() {
		t.Fatal("the engine ended with its database")
	}
	for _, id := range accepted {
		if got := here.Column(t, `SELECT count(*) FROM activities WHERE uri = $1`, id); !slices.Equal(got, []string{"1"}) {
			t.Errorf("%s was accepted and is %q times in the database", id, got)
		}
	}
	acknowledged := there.Column(t, `SELECT j.activity_uri FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE j.type = 'Create' AND d.status = 'delivered'`)
	for _, id := range acknowledged {
		if got := here.Column(t, `SELECT count(*) FROM feed WHERE activity_uri = $1`, id); !slices.Equal(got, []string{"1"}) {
			t.Errorf("%s was acknowledged and is %q times in the feed", id, got)
		}
	}
	enginetest.Eventually(t, "the engine holds the instance again", func() bool {
		var held bool
		err := a.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory'
			AND database = (SELECT oid FROM pg_database WHERE datname = 'lightweb'))`).Scan(&held)
		return err == nil && held
	})
	if health := a.Run(t, "healthcheck"); health.Code != 0 {
		t.Errorf("healthcheck ends with %d %s, want 0", health.Code, health.Stderr)
	}
}
