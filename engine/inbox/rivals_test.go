package inbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
)

// written returns a note with the given author, id and content.
func written(by, id, content string) string {
	return fmt.Sprintf(`{"id":%q,"type":"Note","attributedTo":%q,"to":["as:Public","us:/alice"],"content":%q}`, id, by, content)
}

// create returns a Create of a note. The parameter by names its actor.
func create(by, name, note string) string {
	return fmt.Sprintf(`{"id":"%s/creates/%s","type":"Create","actor":%[1]q,"to":["as:Public","us:/alice"],"object":%[3]s}`, by, name, note)
}

// holds returns the author and the content of alice's object with the given id.
func holds(t *testing.T, s *peertest.Scene, id string) string {
	t.Helper()
	return strings.Join(s.Column(t, s.Alice, `SELECT concat(raw ->> 'attributedTo', ' says ', raw ->> 'content') FROM objects WHERE uri = $1`, string(s.ID(id))), "\n")
}

// contest is what became of an activity with an object that alice holds of another author.
type contest struct {
	id       string // the object
	activity string
	isTaken  bool
	held     string // what alice holds of the object if the activity is not taken
	taken    string // the same if it is
	feed     string // part of the id of the one activity in the feed if, and only if, it is taken
}

func (c contest) expect(t *testing.T, s *peertest.Scene) {
	t.Helper()
	settled(t, s)
	want, reason := s.Long(c.held), inbox.IgnoredContested
	if c.isTaken {
		want, reason = s.Long(c.taken), ""
	}
	if got := holds(t, s, c.id); got != want {
		t.Errorf("alice has %q, want %q", got, want)
	}
	if got := why(t, s, c.activity); got != reason {
		t.Errorf("%s is remembered as %q, want %q", c.activity, got, reason)
	}
	if got := s.Column(t, s.Alice, `SELECT activity_uri FROM feed`); len(got) != 1 || strings.Contains(got[0], c.feed) != c.isTaken {
		t.Errorf("the feed holds %q", got)
	}
}

func TestWhoseAnObjectIsSaysItsServer(t *testing.T) {
	t.Parallel()
	in := peertest.NewInbound(t)
	in.Inbox.Backoff(5*time.Millisecond, 50*time.Millisecond)
	stage := peertest.NewStage(t, in)
	const id = "p:/notes/1"
	for _, tt := range []struct {
		name  string
		shows func(s *peertest.Scene)
		asked int
		carol bool
	}{
		{"the sender's", func(s *peertest.Scene) { s.Serve(id, written("p:/carol", id, "true")) }, 1, true},
		{"the other one's", func(s *peertest.Scene) { s.Serve(id, written("p:/mallory", id, "true")) }, 1, false},
		{"somebody else's", func(s *peertest.Scene) { s.Serve(id, written("q:/carol", id, "true")) }, 1, false},
		{"another object", func(s *peertest.Scene) { s.Serve(id, written("p:/carol", "p:/notes/2", "true")) }, 2, false}, // once at its own id
		{"nothing", func(s *peertest.Scene) {}, 2, false},                                                                // the second request is in alice's name
		{"a deleted one", func(s *peertest.Scene) { s.Answer(id, http.StatusGone) }, 1, false},
		{"the sender's, after a while", func(s *peertest.Scene) {
			n := 0
			s.Handle(id, func(w http.ResponseWriter, r *http.Request) {
				if n++; n < 3 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				w.Header().Set("Content-Type", "application/activity+json")
				_, _ = w.Write([]byte(s.Long(written("p:/carol", id, "true"))))
			})
		}, 3, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			tt.shows(s)
			s.MustSend("p:/mallory", mine, create("p:/mallory", "1", written("p:/mallory", id, "a lie")))
			s.MustSend("p:/carol", mine, create("p:/carol", "1", written("p:/carol", id, "true")))
			contest{id: id, activity: "p:/carol/creates/1", isTaken: tt.carol, held: "p:/mallory says a lie", taken: "p:/carol says true", feed: "carol"}.expect(t, s)
			if n := s.Asked(id); n > tt.asked || n == 0 {
				t.Errorf("the server was asked %d times, want %d at most", n, tt.asked)
			}
		})
	}
}

// The engine stores the content that the object's server shows, not the content that the sender
// embedded.
func TestTheServersAnswerIsStored(t *testing.T) {
	s := newScene(t)
	s.Inbox.Backoff(5*time.Millisecond, 50*time.Millisecond)
	const id = "p:/notes/1"
	letter := strings.Replace(written("p:/dave", id, "psst"), `["as:Public","us:/alice"]`, `"us:/alice"`, 1)
	s.Serve(id, written("p:/dave", id, "hello"))
	s.MustSend("p:/eve", mine, create("p:/eve", "1", written("p:/eve", id, "a lie")))
	s.MustSend("p:/dave", mine, strings.Replace(create("p:/dave", "1", letter), `["as:Public","us:/alice"]`, `"us:/alice"`, 1))
	settled(t, s)
	if got, want := holds(t, s, id), s.Long("p:/dave says hello"); got != want {
		t.Errorf("alice has %q, want %q", got, want)
	}
}

// An actor forwards an answer. The engine stores the answer in its thread, with the content that
// the answer's own server shows.
func TestAForwardedAnswerIsStoredAsItsServerShowsIt(t *testing.T) {
	s := newScene(t)
	s.Inbox.Backoff(5*time.Millisecond, 50*time.Millisecond)
	s.Follows("p:/carol")
	s.Actor("p:/dave")
	const id = "p:/notes/1"
	s.MustSend("p:/carol", mine, note(2, "a question"))
	s.MustSend("p:/eve", mine, create("p:/eve", "1", written("p:/eve", id, "a lie")))
	answer := `{"id":"` + id + `","type":"Note","attributedTo":"p:/dave","to":"as:Public","inReplyTo":"p:/notes/002","content":"true"}`
	s.Serve(id, answer)
	s.Serve("p:/dave/creates/1", `{"id":"p:/dave/creates/1","type":"Create","actor":"p:/dave","to":"as:Public","object":`+answer+`}`)
	s.MustSend("p:/carol", mine, `{"id":"p:/dave/creates/1","type":"Create","actor":"p:/dave","to":"as:Public","object":`+answer+`}`)
	settled(t, s)
	if got, want := holds(t, s, id), s.Long("p:/dave says true"); got != want {
		t.Errorf("alice has %q, want %q", got, want)
	}
}

// The upkeep of the journal lets an activity wait whose object another server has not shown yet.
// The answer makes alice take it.
func TestAnActivityWaitsForTheAnswerAlone(t *testing.T) {
	s := newScene(t)
	const id = "p:/notes/1"
	hang := make(chan struct{})
	answer := sync.OnceFunc(func() { close(hang) })
	t.Cleanup(answer)
	s.Handle(id, func(w http.ResponseWriter, _ *http.Request) {
		<-hang
		w.Header().Set("Content-Type", "application/activity+json")
		_, _ = w.Write([]byte(s.Long(written("p:/carol", id, "true"))))
	})
	s.MustSend("p:/mallory", mine, create("p:/mallory", "1", written("p:/mallory", id, "a lie")))
	if err := accept(s, mine, create("p:/carol", "1", written("p:/carol", id, "true"))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "alice waits for the answer", func() bool { return s.Asked(id) > 0 && !s.Inbox.Stalled(s.Alice) })
	for range 20 {
		if err := s.Inbox.Tend(); err != nil || s.Inbox.Stalled(s.Alice) {
			t.Fatalf("alice is stalled, %v", err)
		}
	}
	answer()
	contest{id: id, activity: "p:/carol/creates/1", isTaken: true, taken: "p:/carol says true", feed: "carol"}.expect(t, s)
}

func TestAnAnswerThatComesMeanwhileLeavesNoRowBehind(t *testing.T) {
	s := newScene(t)
	if !s.Inbox.AskAfterAnswer(s.Alice) {
		t.Error("the drain leaves, and alice's row stays in the journal")
	}
}

// An actor that contests many ids of other authors has a budget for the questions that this causes
// to their server. It does not use up another actor's budget.
func TestWhoContestsMuchPaysForIt(t *testing.T) {
	s := newScene(t)
	s.Inbox.Backoff(5*time.Millisecond, 50*time.Millisecond)
	asked := func(by string) (n int) {
		for i := range 14 {
			n += s.Asked(fmt.Sprintf("p:/notes/%s-%d", strings.TrimPrefix(by, "p:/"), i))
		}
		return n
	}
	for _, by := range []string{"p:/mallory", "p:/dave"} {
		for n := range 14 {
			id := fmt.Sprintf("p:/notes/%s-%d", strings.TrimPrefix(by, "p:/"), n)
			s.Serve(id, written("p:/carol", id, "true"))
			s.MustSend("p:/carol", mine, create("p:/carol", id[2:], written("p:/carol", id, "true")))
			s.MustSend(by, mine, create(by, fmt.Sprint(n), written(by, id, "a lie")))
		}
		settled(t, s)
		if n := asked(by); n < 9 || n > 11 {
			t.Errorf("for %s the server was asked %d times, want about 10", by, n)
		}
		if got := why(t, s, by+"/creates/13"); got != inbox.IgnoredContested {
			t.Errorf("the last one is remembered as %q", got)
		}
	}
	if lies := s.Column(t, s.Alice, `SELECT uri FROM objects WHERE raw ->> 'content' <> 'true'`); len(lies) != 0 {
		t.Errorf("alice has lies: %q", lies)
	}
}

// undoes returns an Undo of an activity that never arrived.
func undoes(by string, n int) string {
	return fmt.Sprintf(`{"id":"%s/undos/%d","type":"Undo","actor":%[1]q,"to":"us:/alice","object":"%[1]s/waves/%[2]d"}`, by, n)
}

func wave(by string, n int) string {
	return fmt.Sprintf(`{"id":"%s/waves/%d","type":"Wave","actor":%[1]q,"to":"us:/alice"}`, by, n)
}

func TestWhatStrangersTakeAwayIsChargedToTheirDomain(t *testing.T) {
	s := newScene(t)
	s.Inbox.StoreDaily(20 << 10)
	marks := func() int {
		return len(s.Column(t, s.Alice, `SELECT 'x' FROM seen`)) + len(s.Column(t, s.Alice, `SELECT 'x' FROM tombstones`))
	}
	before := marks()
	s.MustSend("p:/dave", mine, undoes("p:/dave", 1))
	s.MustSend("p:/dave", mine, `{"id":"p:/dave/deletes/1","type":"Delete","actor":"p:/dave","to":"us:/alice","object":"p:/notes/1"}`)
	if n := marks() - before; n != 0 {
		t.Errorf("%d ids are remembered of somebody that alice has nothing of", n)
	}
	expect(t, s, nil, accepted, func() error { return s.Send("p:/dave", mine, wave("p:/dave", 1)) })
	expect(t, s, nil, accepted, func() error {
		return s.Send("p:/dave", mine, create("p:/dave", "1", written("p:/dave", "p:/notes/1", "hi")))
	})

	s.MustSend("p:/mallory", mine, wave("p:/mallory", 0)) // from here on, alice's database holds an activity of mallory's
	before = marks()
	for n := range 30 {
		s.MustSend("p:/mallory", mine, undoes("p:/mallory", n+1))
	}
	if n := marks() - before; n < 5 || n > 10 {
		t.Errorf("%d ids are remembered, want those that 20 KiB a day pay for", n)
	}
	for _, n := range []int{1, 30} { // alice's database remembers the first id, and only the memory remembers the other one
		if err := s.Send("q:/carol", mine, wave("q:/carol", n)); err != nil {
			t.Errorf("another domain pays: %v", err)
		}
	}
	s.Later(25 * time.Hour)
	for _, n := range []int{1, 30} {
		expect(t, s, nil, accepted, func() error { return s.Send("p:/mallory", mine, wave("p:/mallory", n)) })
	}

	s.Follows("p:/carol")
	s.MustSend("p:/carol", mine, undoes("p:/carol", 1))
	expect(t, s, nil, accepted, func() error { return s.Send("p:/carol", mine, wave("p:/carol", 1)) })
}

// Decision 29: if a server does not answer, the engine tries to ask it for about a minute.
func TestAServerThatCannotBeAskedIsTriedForAMinute(t *testing.T) {
	s := newScene(t)
	if d := s.Inbox.RivalTime(); d < time.Minute || d > 2*time.Minute {
		t.Errorf("it is tried for %v, want about a minute", d)
	}
}
