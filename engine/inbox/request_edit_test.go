package inbox_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/user"
)

// An edit of a message that waits among the requests changes the message there. Its event has only
// ids, and no other feed shows it.
func TestAnEditOfARequestTellsNoWords(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/dave", mine, letter(1))
	s.MustSend("p:/dave", mine, `{"id":"p:/updates/001","type":"Update","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/notes/001","type":"Note","attributedTo":"p:/dave",
		"to":"us:/alice","content":"psst again","updated":"2099-01-01T00:00:00Z","tag":{"type":"Mention","href":"us:/alice"}}}`)
	if got := contents(t, s); !slices.Equal(got, []string{"psst again"}) {
		t.Fatalf("alice holds %q, want the new words", got)
	}
	if got := shownIn(t, s, "requests"); !slices.Equal(got, []string{"001"}) {
		t.Errorf("the requests are %q, want the letter alone", got)
	}
	for _, feed := range []string{"main", "notifications"} {
		if got := shownIn(t, s, feed); len(got) != 0 {
			t.Errorf("%s has %q, want nothing", feed, got)
		}
	}
	s.MustSend("p:/dave", mine, `{"id":"p:/dave/deletes/1","type":"Delete","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/notes/001","type":"Tombstone"}}`)
	s.MustSend("p:/dave", mine, letter(2))
	s.MustSend("p:/dave", mine, `{"id":"p:/dave/undos/1","type":"Undo","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/creates/002","type":"Create","actor":"p:/dave","object":"p:/notes/002"}}`)
	told := s.Column(t, s.Alice, `SELECT type || ' ' || payload::text FROM event_outbox ORDER BY seq`)
	for _, event := range told {
		if !strings.HasPrefix(event, "request.received ") {
			t.Errorf("an event of a request is told to tokens of scope llm: %s", event)
		}
	}
	if len(told) < 4 {
		t.Errorf("events: %q, want those of two letters, an edit and a deletion", told)
	}
	for _, event := range told {
		if strings.Contains(event, "psst") || strings.HasPrefix(event, "dm.") || strings.HasPrefix(event, "mention.") {
			t.Errorf("an event tells more than ids: %s", event)
		}
	}
}

// A sender takes back a message or boost that waits among the requests. It is then not shown
// there, and does not enter the feed when the user accepts the sender's other requests. It still
// counts as a request. Otherwise a stranger could send and take back without limit.
func TestWhatAStrangerTakesBackIsShownNowhereAndCounts(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/dave", mine, letter(1))
	s.MustSend("p:/dave", mine, `{"id":"p:/dave/deletes/1","type":"Delete","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/notes/001","type":"Tombstone"}}`)
	s.Serve("p:/n/1", `{"@context":"https://www.w3.org/ns/activitystreams","id":"p:/n/1","type":"Note","attributedTo":"p:/dave","to":"us:/alice","content":"psst"}`)
	s.MustSend("p:/dave", mine, `{"id":"p:/boosts/002","type":"Announce","actor":"p:/dave","to":"us:/alice","object":"p:/n/1"}`)
	if got := shownIn(t, s, "requests"); !slices.Equal(got, []string{"002"}) {
		t.Fatalf("the requests are %q, want the boost alone", got)
	}
	s.MustSend("p:/dave", mine, `{"id":"p:/dave/undos/1","type":"Undo","actor":"p:/dave","to":"us:/alice","object":{"id":"p:/boosts/002","type":"Announce","actor":"p:/dave","object":"p:/n/1"}}`)
	if got := shownIn(t, s, "requests"); len(got) != 0 {
		t.Errorf("the requests are %q, want none", got)
	}
	if got := s.Column(t, s.Alice, `SELECT activity_uri FROM requests`); len(got) != 2 {
		t.Errorf("%q count, want both", got)
	}
	if got := s.Column(t, s.Alice, `SELECT uri FROM objects WHERE uri = $1`, s.ID("p:/n/1")); len(got) != 0 {
		t.Errorf("%q is left for threads and searches", got)
	}
	s.MustSend("p:/dave", mine, letter(3))
	err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Requests.Accept(ctx, s.ID("p:/dave"), s.Now())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := shownIn(t, s, "main"); !slices.Equal(got, []string{"003"}) {
		t.Errorf("the feed has %q, want the message that stands", got)
	}
}

// An actor that may write to the user in private may make its public post private, even if the
// user does not follow the actor. A stranger may not.
func TestAFriendMakesAPublicPostPrivate(t *testing.T) {
	for name, friend := range map[string]bool{"a friend that alice does not follow": true, "a stranger": false} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			note := func(to, content string) string {
				return `"to":` + to + `,"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","to":` + to + `,"content":"` + content + `","updated":"2026-01-02T00:00:00Z"}}`
			}
			s.MustSend("p:/dave", mine, `{"id":"p:/a/1","type":"Create","actor":"p:/dave",`+strings.Replace(note(`["us:/alice","as:Public"]`, "hello"), "02T", "01T", 1))
			if friend {
				err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
					return tx.Relationships.Set(ctx, user.Relationship{Actor: s.ID("p:/dave"), Type: user.FriendOf, Status: user.Accepted, Activity: s.ID("p:/dave/offers/1"), Direction: user.Inbound}, s.Now())
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			s.MustSend("p:/dave", mine, `{"id":"p:/a/2","type":"Update","actor":"p:/dave",`+note(`"us:/alice"`, "psst"))
			want := map[bool]string{true: "psst", false: "hello"}[friend]
			if got := contents(t, s); !slices.Equal(got, []string{want}) {
				t.Errorf("alice holds %q, want %q", got, want)
			}
		})
	}
}

// When the user declines a message, everything of it is removed, in whichever form the message
// names its author.
func TestADeclineFindsTheAuthorInEveryForm(t *testing.T) {
	for _, author := range []string{`{"@id":"p:/dave","type":"Person"}`, `{"type":"Link","href":"p:/dave"}`, `[{"id":"p:/dave"}]`} {
		t.Run(author, func(t *testing.T) {
			s := newScene(t)
			s.MustSend("p:/dave", mine, strings.Replace(letter(1), `"attributedTo":"p:/dave"`, `"attributedTo":`+author, 1))
			if got := shownIn(t, s, "requests"); len(got) != 1 {
				t.Fatalf("the requests are %q, want the letter", got)
			}
			err := s.Store.Write(t.Context(), s.Alice, func(ctx context.Context, tx *user.Tx) error { return tx.Requests.Remove(ctx, s.ID("p:/dave")) })
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Column(t, s.Alice, `SELECT uri FROM activities UNION ALL SELECT uri FROM objects`); len(got) != 0 {
				t.Errorf("after a decline there is %q, want nothing", got)
			}
		})
	}
}
