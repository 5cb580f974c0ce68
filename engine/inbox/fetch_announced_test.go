package inbox_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// group makes a Group actor that alice follows. It returns announce, which builds an Announce by
// the group.
func group(s *peertest.Scene) (announce func(n int, inner string) string) {
	g := s.Actor("p:/group")
	g.Doc["type"] = "Group"
	g.Show()
	s.Follows("p:/group")
	return func(n int, inner string) string {
		return fmt.Sprintf(`{"id":"p:/announces/%d","type":"Announce","actor":"p:/group","to":"as:Public","cc":"p:/group/followers","object":%s}`, n, inner)
	}
}

func createdBy(n int) string {
	return fmt.Sprintf(`{"id":"q:/creates/%d","type":"Create","actor":"q:/eve","to":"as:Public","object":{"id":"q:/notes/%d","type":"Note","attributedTo":"q:/eve","to":"as:Public","content":"hi"}}`, n, n)
}

// A budget limits the fetches from other servers that a group causes. The engine records announced
// activities above the budget as ignored.
func TestAGroupsFetchesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it sends thousands of what others send a few of")
	}
	const all = 10_000
	s := newScene(t)
	announce := group(s)
	s.Serve("q:/post/1", `{"id":"q:/post/1","type":"Note","attributedTo":"q:/eve","to":"as:Public","cc":"p:/group","content":"hi"}`)
	before := s.Reached("q:")
	for n := range all {
		if err := s.Inbox.Receive(policy.PaidByAddress(t.Context(), netip.MustParsePrefix("192.0.2.1/32")), s.Request("p:/group", shared, announce(n, createdBy(n))), []byte(s.Long(announce(n, createdBy(n)))), vocab.Username{}); err != nil {
			t.Fatal(err)
		}
	}
	if asked := s.Reached("q:") - before; asked < 100 || asked > all/10 {
		t.Errorf("for %d announces other servers were asked %d times", all, asked)
	}
	if got := why(t, s, fmt.Sprintf("p:/announces/%d", all-1)); got != inbox.IgnoredGroupBudget {
		t.Errorf("the last one is remembered as %q, want %q", got, inbox.IgnoredGroupBudget)
	}
	if err := s.Send("p:/group", shared, announce(all, `{"id":"q:/likes/1","type":"Like","actor":"q:/eve","object":"q:/post/1"}`)); err != nil {
		t.Errorf("a vote, which needs no fetch, was answered %v", err)
	}
}

// A group's server delivers its activities in order. So the engine answers it 202, even if the
// announced object's server returns an error.
func TestAGroupIsNotToldOfOtherServers(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for status, want := range map[int]string{http.StatusNotFound: inbox.IgnoredUnproven, http.StatusForbidden: inbox.IgnoredUnproven,
		http.StatusServiceUnavailable: inbox.IgnoredUnproven, http.StatusGone: inbox.IgnoredUnproven} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			s := stage.Scene(t)
			announce := group(s)
			s.Answer("q:/notes/1", status)
			s.MustSend("p:/group", shared, announce(1, createdBy(1)))
			if got := why(t, s, "p:/announces/1"); got != want {
				t.Errorf("it is remembered as %q, want %q", got, want)
			}
		})
	}
}

// The engine answers a group Unavailable when too many requests wait for the post's server. The
// group sends the post again.
func TestAGroupComesAgainWhenTooManyWait(t *testing.T) {
	const all = 9
	s := newScene(t)
	announce := group(s)
	answer := make(chan struct{})
	for n := range all {
		id := fmt.Sprintf("q:/notes/%d", n)
		s.Handle(id, func(w http.ResponseWriter, _ *http.Request) {
			<-answer
			w.Header().Set("Content-Type", vocab.ActivityJSON)
			_, _ = fmt.Fprint(w, s.Long(`{"@context":"https://www.w3.org/ns/activitystreams","id":"`+id+`","type":"Note","attributedTo":"q:/eve","to":"as:Public","content":"hi"}`)) // the write succeeds: the client stays connected
		})
	}
	type result struct {
		n   int
		err error
	}
	results := make(chan result, all)
	for n := range all {
		r := s.Request("p:/group", shared, announce(n, createdBy(n)))
		go func() { results <- result{n, s.Receive(r, shared, announce(n, createdBy(n)))} }()
	}
	got := <-results // the other requests wait for an answer
	close(answer)
	if fault.KindOf(got.err) != fault.Unavailable {
		t.Errorf("while the others wait, one is answered %v, want Unavailable", got.err)
	}
	refused := []int{got.n}
	for range all - 1 {
		if got := <-results; got.err != nil {
			refused = append(refused, got.n)
		}
	}
	for _, n := range refused {
		s.MustSend("p:/group", shared, announce(n, createdBy(n)))
	}
	if got := s.Column(t, s.Alice, `SELECT activity_uri FROM feed`); len(got) != all {
		t.Errorf("the feed holds %d posts, want %d: %q", len(got), all, got)
	}
}

// The engine asks the author's server about a post that has a valid proof, because the author may
// have deleted the post after the proof was made.
func TestAGroupBringsNothingBackByAnOldProof(t *testing.T) {
	for status, want := range map[int]string{http.StatusOK: "", http.StatusGone: inbox.IgnoredUnproven} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			s := newScene(t)
			announce := group(s)
			s.Actor("q:/eve")
			s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/eve","to":"as:Public","content":"hi"}`)
			if status != http.StatusOK {
				s.Answer("q:/notes/1", status)
			}
			proven := s.ProvenAt("q:/eve", strings.Replace(createdBy(1), "{", `{"@context":["https://www.w3.org/ns/activitystreams","https://w3id.org/security/data-integrity/v1"],`, 1), s.Now().Add(-49*time.Hour))
			if err := s.Pass("p:/group", shared, []byte(strings.Replace(s.Long(announce(1, "{}")), "{}", string(proven), 1))); err != nil {
				t.Fatal(err)
			}
			if got := why(t, s, "p:/announces/1"); got != want {
				t.Errorf("it is remembered as %q, want %q", got, want)
			}
			if n := s.Asked("q:/notes/1"); n != 1 {
				t.Errorf("the author's server was asked %d times, want once", n)
			}
		})
	}
}

// The proof in an announced activity shows who wrote a post, but not that the author may use the
// post's id. If the user already holds another author's post with that id, the held post stays,
// unless the post's server names the new author.
func TestAnAnnouncedProofTakesNoIDFromAnotherAuthor(t *testing.T) {
	t.Parallel()
	in := peertest.NewInbound(t)
	in.Inbox.Backoff(5*time.Millisecond, 50*time.Millisecond)
	stage := peertest.NewStage(t, in)
	const id = "q:/notes/1"
	carols, mallorys := written("q:/carol", id, "true"), written("q:/mallory", id, "a lie")
	for _, tt := range []struct {
		name  string
		shows func(s *peertest.Scene)
		asked int
		taken bool
	}{
		{"its server shows the other author's", func(s *peertest.Scene) { s.Serve(id, carols) }, 1, false},
		{"its server shows it as the prover's", func(s *peertest.Scene) { s.Serve(id, mallorys) }, 1, true},
		{"its server shows nothing", func(*peertest.Scene) {}, 1, false},
		{"its server does not answer", func(s *peertest.Scene) { s.Answer(id, http.StatusServiceUnavailable) }, 7, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			announce := group(s)
			tt.shows(s)
			s.MustSend("q:/carol", mine, create("q:/carol", "1", carols))
			before := s.Asked(id)
			proven := s.Proven("q:/mallory", strings.Replace(create("q:/mallory", "9", mallorys), "{", `{"@context":["https://www.w3.org/ns/activitystreams","https://w3id.org/security/data-integrity/v1"],`, 1))
			body := strings.Replace(s.Long(announce(1, "%")), "%", string(proven), 1)
			if err := s.Pass("p:/group", shared, []byte(body)); err != nil {
				t.Fatal(err)
			}
			contest{id: id, activity: "p:/announces/1", isTaken: tt.taken, held: "q:/carol says true", taken: "q:/mallory says a lie", feed: "announces"}.expect(t, s)
			if n := s.Asked(id) - before; n == 0 || n > tt.asked {
				t.Errorf("its server was asked %d times, want %d at most", n, tt.asked)
			}
		})
	}
}

// A post that a valid proof covers has the bounds of a post that is fetched.
func TestAnAnnouncedProofTakesNoPostBeyondBounds(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	for name, change := range map[string]func(note string) string{
		"none":   func(note string) string { return note },
		"a type": func(note string) string { return strings.Replace(note, `"Note"`, `["Note","No te"]`, 1) },
		"a long text": func(note string) string {
			return strings.Replace(note, "true", strings.Repeat("x", vocab.MaxContent+1), 1)
		},
		"too many tags": func(note string) string {
			return strings.Replace(note, `"Note"`, `"Note","tag":["x"`+strings.Repeat(`,"x"`, 256)+`]`, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := stage.Scene(t)
			announce := group(s)
			s.Actor("q:/eve")
			body := create("q:/eve", "1", change(written("q:/eve", "q:/notes/1", "true")))
			proven := s.Proven("q:/eve", strings.Replace(body, "{", `{"@context":["https://www.w3.org/ns/activitystreams","https://w3id.org/security/data-integrity/v1"],`, 1))
			if err := s.Pass("p:/group", shared, []byte(strings.Replace(s.Long(announce(1, "%")), "%", string(proven), 1))); err != nil {
				t.Fatal(err)
			}
			if got, want := s.Column(t, s.Alice, `SELECT uri FROM objects`), name == "none"; (len(got) == 1) != want {
				t.Errorf("alice has %q, want the post: %t", got, want)
			}
		})
	}
}

// An author changes and deletes a post that an earlier version stored with a type that is refused
// now.
func TestAPostOfATypeThatIsRefusedNowIsStillItsAuthors(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	s.MustSend("p:/carol", shared, note(1, "before"))
	if _, err := s.DB(t, s.Alice).Exec(`UPDATE objects SET raw = jsonb_set(raw, '{type}', '["Note","No te"]')`); err != nil {
		t.Fatal(err)
	}
	s.MustSend("p:/carol", shared, edit(1, "after"))
	if got, want := holds(t, s, "p:/notes/001"), s.Long("p:/carol says after"); got != want {
		t.Errorf("alice has %q, want %q", got, want)
	}
	if _, err := s.DB(t, s.Alice).Exec(`UPDATE objects SET raw = jsonb_set(raw, '{type}', '"No te"')`); err != nil {
		t.Fatal(err)
	}
	s.MustSend("p:/carol", shared, `{"id":"p:/deletes/1","type":"Delete","actor":"p:/carol","to":"as:Public","object":"p:/notes/001"}`)
	if got := s.Column(t, s.Alice, `SELECT uri FROM objects WHERE deleted_at IS NOT NULL`); len(got) != 1 {
		t.Errorf("the deleted posts are %q, want one", got)
	}
}
