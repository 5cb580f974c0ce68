package inbox_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// group makes a Group actor that alice follows, and returns an Announce of it.
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

// A group that announces without end costs other servers as much as its budget, and nothing that
// goes beyond is forgotten.
func TestAGroupsFetchesAreBounded(t *testing.T) {
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

// Servers of groups send in order: whatever other servers do, a group is answered 202.
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
