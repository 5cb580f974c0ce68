package inbox_test

import (
	"slices"
	"strings"
	"testing"
)

// An edit of a message that waits among the requests changes it there: its event has ids only,
// and no other feed shows it.
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
	told := s.Column(t, s.Alice, `SELECT type || ' ' || payload::text FROM event_outbox ORDER BY seq`)
	if len(told) == 0 || !strings.HasPrefix(told[0], "request.received ") {
		t.Errorf("events: %q, want request.received first", told)
	}
	for _, event := range told {
		if strings.Contains(event, "psst") || strings.HasPrefix(event, "dm.") || strings.HasPrefix(event, "mention.") {
			t.Errorf("an event tells more than ids: %s", event)
		}
	}
}
