package inbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/inbox"
)

// why returns the recorded reason for which an activity was ignored. It returns "" if there is no
// record.
func why(t *testing.T, s *peertest.Scene, activity string) string {
	t.Helper()
	if err := s.Inbox.FlushIgnored(context.Background()); err != nil {
		t.Fatal(err)
	}
	g, err := s.Store.Instance.Ignored.Find(t.Context(), s.ID(activity))
	if err != nil {
		t.Fatal(err)
	}
	if g == nil {
		return ""
	}
	return g.Reason
}

// The engine records each activity that it answered 202 and that no user keeps, with the reason.
// It does not record an activity that any user keeps.
func TestWhatIsKeptForNobodyIsRemembered(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const post = `{"id":"p:/x","type":"Create","actor":"p:/carol","to":"as:Public","object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","to":"as:Public","content":"hi"}}`
	to := func(names string) string { return strings.ReplaceAll(post, `"as:Public"`, names) }
	for _, tt := range []struct {
		name, inbox, body, want string
	}{
		{"about nobody here", shared, post, inbox.IgnoredNobody},
		{"a post that names the user", mine, post, ""},
		{"a post for followers", mine, to(`"p:/carol/followers"`), inbox.IgnoredFollowers},
		{"an edit of what is not here", mine, strings.Replace(post, "Create", "Update", 1), inbox.IgnoredNoEffect},
		{"a report about nobody", shared, `{"id":"p:/x","type":"Flag","actor":"p:/carol","object":"q:/notes/1"}`, inbox.IgnoredReport},
		{"a deletion of what never came", mine, `{"id":"p:/x","type":"Delete","actor":"p:/carol","object":"p:/notes/9"}`, inbox.IgnoredNoEffect},
		{"a follow", mine, strings.Replace(follow, "p:/follows/1", "p:/x", 1), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := stage.Scene(t)
			s.MustSend("p:/carol", tt.inbox, tt.body)
			if got := why(t, s, "p:/x"); got != tt.want {
				t.Errorf("it is remembered as %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWhatABlockedActorSendsIsRemembered(t *testing.T) {
	s := newScene(t)
	s.Act("p:/carol", `{"id":"us:/alice/blocks/1","type":"Block","actor":"us:/alice","object":"p:/carol"}`)
	s.MustSend("p:/carol", mine, note(1, "hi"))
	if got := why(t, s, "p:/creates/001"); got != inbox.IgnoredBlocked {
		t.Errorf("it is remembered as %q, want %q", got, inbox.IgnoredBlocked)
	}
}

// An activity for several recipients causes one record and one log line if none of them keeps it.
// It causes neither if one of them keeps it.
func TestAnActivityIsIgnoredOnceForAllItsRecipients(t *testing.T) {
	var log bytes.Buffer
	alice, bob := two(t, func(d *inbox.Deps) { d.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	both := `"to":["us:/alice","` + string(bob.ID("us:/alice")) + `"]`
	alice.MustSend("p:/dave", shared, `{"id":"p:/likes/1","type":"Like","actor":"p:/dave",`+both+`,"object":"p:/notes/nobodys"}`)
	eventually(t, "nothing is in memory", func() bool { return alice.Inbox.Waiting() == 0 })
	if got := why(t, alice, "p:/likes/1"); got != inbox.IgnoredNoEffect {
		t.Errorf("it is remembered as %q, want %q", got, inbox.IgnoredNoEffect)
	}
	alice.Act("p:/carol", `{"id":"us:/alice/blocks/1","type":"Block","actor":"us:/alice","object":"p:/carol"}`)
	alice.MustSend("p:/carol", shared, note(1, "hi"))
	settled(t, alice, bob)
	if got := why(t, alice, "p:/creates/001"); got != "" || len(created(t, bob)) != 1 {
		t.Errorf("what bob keeps is remembered as ignored: %q", got)
	}
	if err := alice.Inbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(log.String(), "activity ignored"); n != 1 || !strings.Contains(log.String(), "reason=no_effect") {
		t.Errorf("%d lines:\n%s\nwant one, with the reason", n, log.String())
	}
}
