package inbox_test

import (
	"fmt"
	"slices"
	"testing"
)

// Friendica and Mobilizon send each edit of a post under the same id.
func TestEditsUnderOneIDTakeEffectInTurn(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/carol", mine, `{"id":"p:/notes/1/Create","type":"Create","actor":"p:/carol","to":"us:/alice","object":`+version("first", "")+`}`)
	edit := func(content, updated string) string {
		return `{"id":"p:/notes/1/Update","type":"Update","actor":"p:/carol","to":"us:/alice","object":` + version(content, updated) + `}`
	}
	for _, c := range []struct{ sent, updated, want string }{
		{"second", "2026-01-02T00:00:00Z", "second"},
		{"third", "2026-01-03T00:00:00Z", "third"},
		{"second", "2026-01-02T00:00:00Z", "third"},
		{"other words of the same time", "2026-01-03T00:00:00Z", "third"},
		{"an older version that never came", "2026-01-02T12:00:00Z", "third"},
		{"no time", "", "third"},
		{"fourth", "2026-01-04T00:00:00Z", "fourth"},
	} {
		s.MustSend("p:/carol", mine, edit(c.sent, c.updated))
		if got := contents(t, s); !slices.Equal(got, []string{c.want}) {
			t.Errorf("after %q of %q alice holds %q, want %q", c.sent, c.updated, got, c.want)
		}
	}
	if got := s.Column(t, s.Alice, `SELECT uri FROM activities WHERE type = 'Update'`); len(got) != 1 {
		t.Errorf("activities: %q, want one Update", got)
	}
	if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox WHERE type = 'update.received'`); len(got) != 3 {
		t.Errorf("%d events tell of an edit, want one for each that took effect", len(got))
	}
}

func version(content, updated string) string {
	if updated != "" {
		updated = fmt.Sprintf(`,"updated":%q`, updated)
	}
	return fmt.Sprintf(`{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","to":"us:/alice","content":%q,"published":"2026-01-01T00:00:00Z"%s,"tag":{"type":"Mention","href":"us:/alice"}}`, content, updated)
}
