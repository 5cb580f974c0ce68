package inbox_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/vocab"
)

// showTo lets a peer show an object to the given users only. asked counts how often each of these
// users asked, and how often anybody else was refused.
func showTo(s *peertest.Scene, id, doc string, status int, users ...*peertest.Scene) (asked map[string]int) {
	asked = map[string]int{}
	s.Handle(id, func(w http.ResponseWriter, r *http.Request) {
		by := r.Header.Get("Signature-Input") + r.Header.Get("Signature")
		for _, u := range users {
			if me := u.Long("us:/alice"); strings.Contains(by, me+"#") {
				asked[u.Alice.String()]++
				w.Header().Set("Content-Type", vocab.ActivityJSON)
				_, _ = w.Write([]byte(s.Long(doc))) // the write succeeds: the client stays connected
				return
			}
		}
		asked["refused"]++
		w.WriteHeader(status)
	})
	return asked
}

func privateNote(addressing string) string {
	return `{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol"` + addressing + `,"content":"between us"}`
}

func byReference(kind, by, addressing string) string {
	return `{"id":"` + by + `/acts/1","type":"` + kind + `","actor":"` + by + `"` + addressing + `,"object":"p:/notes/1"}`
}

// followsToo lets a second user follow carol.
func followsToo(bob *peertest.Scene, accepted bool) {
	bob.Act("p:/carol", `{"id":"us:/alice/activities/f","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)
	if accepted {
		bob.MustSend("p:/carol", mine, `{"id":"p:/accepts/`+bob.Alice.String()+`","type":"Accept","actor":"p:/carol","object":"us:/alice/activities/f"}`)
	}
}

func words(t *testing.T, s *peertest.Scene) []string {
	t.Helper()
	return s.Column(t, s.Alice, `SELECT raw ->> 'content' FROM objects`)
}

// A private post arrives as an id. The engine fetches the post in the name of one of its readers.
// It reaches the users that the post itself addresses.
func TestAPrivatePostThatComesByReferenceReachesItsReaders(t *testing.T) {
	t.Parallel()
	in := peertest.NewInbound(t)
	in.Inbox.Backoff(5*time.Millisecond, 50*time.Millisecond)
	stage := peertest.NewStage(t, in)
	const (
		followers = `,"to":"p:/carol/followers"`
		alice     = `,"to":"us:/alice"`
		both      = `,"to":["us:/alice","BOB"]`
		everybody = `,"to":"as:Public","cc":["us:/alice","BOB"]`
		nobody    = ``
	)
	got := []string{"between us"}
	for n, tt := range []struct {
		name       string
		kind       string
		follows    string // carol's followers: a for alice, b for bob; p for bob if carol has not accepted his follow
		activity   string
		object     string
		inbox      string
		status     int
		shown      string // the users that the peer shows the post to
		alice, bob []string
		parked     bool // bob's database is away when the post arrives
	}{
		{"a direct one to alice", "Create", "ab", alice, alice, mine, 403, "a", got, nil, false},
		{"a direct one to both", "Create", "ab", both, both, shared, 401, "ab", got, got, false},
		{"for followers", "Create", "ab", followers, followers, shared, 404, "ab", got, got, false},
		{"for followers, while bob is parked", "Create", "ab", followers, followers, shared, 404, "ab", got, got, true},
		{"for followers, while the only one is parked", "Create", "b", followers, followers, shared, 404, "b", nil, got, true},
		{"for followers, while bob follows nobody", "Create", "a", followers, followers, shared, 404, "a", got, nil, false},
		{"for followers, while carol has not accepted bob", "Create", "pa", followers, followers, shared, 404, "a", got, nil, false},
		{"for followers, with bob named in the activity alone", "Create", "pa", `,"to":["p:/carol/followers","us:/alice","BOB"]`, followers, shared, 403, "a", got, nil, false},
		{"for followers, with bob named in the activity alone, while bob is parked", "Create", "pa", `,"to":["p:/carol/followers","us:/alice","BOB"]`, followers, shared, 403, "a", got, nil, true},
		{"for alice, in a Create for everybody", "Create", "ab", everybody, alice, shared, 403, "a", got, nil, false},
		{"without addressing", "Create", "ab", both, nobody, shared, 403, "a", got, nil, false},
		{"without addressing, while bob is parked", "Create", "ab", both, nobody, shared, 403, "a", got, nil, true},
		{"a hidden recipient's", "Create", "a", nobody, `,"to":"p:/dave"`, mine, 403, "a", got, nil, false},
		{"refused to everybody", "Create", "ab", both, both, shared, 403, "", nil, nil, false},
		{"a boost of the author's own", "Announce", "ab", followers, followers, shared, 403, "ab", got, got, false},
		{"for alice, in a boost for everybody", "Announce", "ab", everybody, alice, shared, 403, "a", got, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			bob := s.With(fmt.Sprint("bob", n))
			for _, who := range tt.follows {
				switch who {
				case 'a':
					s.Follows("p:/carol")
				case 'b', 'p':
					followsToo(bob, who == 'b')
				}
			}
			name := func(text string) string { return strings.ReplaceAll(text, "BOB", string(bob.ID("us:/alice"))) }
			var readers []*peertest.Scene
			if strings.Contains(tt.shown, "a") {
				readers = append(readers, s)
			}
			if strings.Contains(tt.shown, "b") {
				readers = append(readers, bob)
			}
			showTo(s, "p:/notes/1", name(privateNote(tt.object)), tt.status, readers...)
			users := []*peertest.Scene{s, bob}
			if tt.parked {
				bob.Down(t, bob.Alice)
			}
			s.MustSend("p:/carol", tt.inbox, name(byReference(tt.kind, "p:/carol", tt.activity)))
			if tt.parked {
				bob.Up(t, bob.Alice)
			}
			settled(t, users...)
			for _, is := range []struct {
				who  *peertest.Scene
				want []string
			}{{s, tt.alice}, {bob, tt.bob}} {
				if got := words(t, is.who); !slices.Equal(got, is.want) {
					t.Errorf("%s has %q, want %q", is.who.Alice, got, is.want)
				}
				if feed := is.who.Column(t, is.who.Alice, `SELECT 'x' FROM feed`); len(feed) != len(is.want) {
					t.Errorf("%s has %d items in the feed, want %d", is.who.Alice, len(feed), len(is.want))
				}
			}
		})
	}
}

// An edit of a private post arrives as an id. The engine fetches the edit in the name of one of
// its readers.
func TestAnEditOfAPrivatePostMayComeByReference(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	const to = `,"to":"p:/carol/followers"`
	s.MustSend("p:/carol", shared, `{"id":"p:/acts/0","type":"Create","actor":"p:/carol"`+to+`,"object":{"id":"p:/notes/1","type":"Note"`+to+`,"content":"old"}}`)
	showTo(s, "p:/notes/1", privateNote(to+`,"updated":"`+time.Now().UTC().Format(time.RFC3339Nano)+`"`), http.StatusForbidden, s)
	s.MustSend("p:/carol", shared, byReference("Update", "p:/carol", to))
	if got := words(t, s); !slices.Equal(got, []string{"between us"}) {
		t.Errorf("alice has %q, want the new words", got)
	}
}

// The engine signs a fetch as alice only if the sender is on the same server as the post. An actor
// of that server who is not the author still cannot spread a post that only alice may read.
func TestNobodyLetsAUserAskForWhatItWasNotSent(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const toAlice = `,"to":["us:/alice","as:Public"]`
	for _, tt := range []struct {
		name, by, kind string
		asAlice        int
	}{
		{"a third server's, in a boost", "q:/mallory", "Announce", 0},
		{"a neighbour's, in a boost", "p:/mallory", "Announce", 1},
		{"a neighbour's, in a Create", "p:/mallory", "Create", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			s.Follows("p:/carol")
			asked := showTo(s, "p:/notes/1", privateNote(`,"to":"us:/alice"`), http.StatusForbidden, s)
			if made := s.Changes(func() { s.MustSend(tt.by, mine, byReference(tt.kind, tt.by, toAlice)) }); len(made) > 0 {
				t.Errorf("changes %q, want none", made)
			}
			if asked["refused"] == 0 || asked[s.Alice.String()] != tt.asAlice {
				t.Errorf("asked %v, want %d times as alice", asked, tt.asAlice)
			}
		})
	}
}

// Another actor forwards to alice the id of a post that does not address her. The engine does not
// fetch the post in alice's name.
func TestAUserWhoWasNotSentAPostDoesNotAskForIt(t *testing.T) {
	s := newScene(t)
	s.MustSend("q:/dave", mine, `{"id":"q:/waves/1","type":"Wave","actor":"q:/dave"}`)
	asked := showTo(s, "p:/notes/1", privateNote(`,"to":"p:/erin"`), http.StatusForbidden, s)
	s.Actor("p:/carol")
	if err := s.Pass("q:/dave", mine, s.Proven("p:/carol", byReference("Create", "p:/carol", `,"to":"p:/erin"`))); err != nil {
		t.Fatal(err)
	}
	if asked[s.Alice.String()] != 0 || len(words(t, s)) != 0 {
		t.Errorf("asked %v, alice has %q; want nobody to ask as alice", asked, words(t, s))
	}
}

// A server no longer shows a private post. Its author's boost of the post appears once, for users
// who hold the post. Another actor's boost does not appear.
func TestABoostOfAHeldPrivatePostAppearsOnce(t *testing.T) {
	s := newScene(t)
	bob := s.With("bob")
	s.Follows("p:/carol")
	followsToo(bob, true)
	const to = `,"to":"p:/carol/followers"`
	s.MustSend("p:/carol", mine, `{"id":"p:/acts/0","type":"Create","actor":"p:/carol"`+to+`,"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol"`+to+`,"content":"between us"}}`)
	s.Answer("p:/notes/1", http.StatusNotFound)
	for range 2 {
		s.MustSend("p:/carol", shared, byReference("Announce", "p:/carol", to))
	}
	if feed := s.Column(t, s.Alice, `SELECT activity_uri FROM feed ORDER BY activity_uri`); len(feed) != 2 {
		t.Errorf("the feed holds %q, want the post and its boost", feed)
	}
	if got := words(t, bob); len(got) != 0 {
		t.Errorf("bob, who did not get the post, has %q", got)
	}
	s.MustSend("q:/mallory", mine, byReference("Announce", "q:/mallory", `,"to":["us:/alice","as:Public"]`))
	if feed := s.Column(t, s.Alice, `SELECT activity_uri FROM feed`); len(feed) != 2 {
		t.Errorf("somebody else's boost shows a private post: %q", feed)
	}
	if got := why(t, s, "q:/mallory/acts/1"); got != inbox.IgnoredNoEffect {
		t.Errorf("it is remembered as %q", got)
	}
}
