package inbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// liked returns a Like of alice's post. The parameter by names the Like's actor.
func liked(by string) string {
	return strings.ReplaceAll(`{"id":"BY/likes/`+fmt.Sprint(time.Now().UnixNano())+`","type":"Like","actor":"BY","object":"us:/alice/objects/1"}`, "BY", by)
}

// A domain has a daily budget for storing actors that are new to this server. When the budget is
// used up, known actors and actors of other domains are still accepted.
func TestNewActorsAreStoredWithinABudget(t *testing.T) {
	s := newScene(t)
	s.Posts("us:/alice/objects/1", "as:Public")
	remembered := func(name string) *instance.RemoteActor {
		t.Helper()
		row, err := s.Store.Instance.Actors.Find(t.Context(), s.ID(name))
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	s.MustSend("p:/carol", "us:/alice/inbox", liked("p:/carol"))
	if remembered("p:/carol") == nil {
		t.Fatal("who likes a post of alice's is not stored")
	}
	s.Inbox.NewActorsDaily(8 << 10)
	names, refused := []string{"p:/dave", "p:/erin", "p:/frank", "p:/grace", "p:/heidi", "p:/ivan"}, ""
	for _, name := range names {
		if err := s.Send(name, "us:/alice/inbox", liked(name)); err != nil {
			if fault.KindOf(err) != fault.RateLimited || fault.Of(err).RetryAfter < time.Minute {
				t.Errorf("err = %v, want RateLimited with a time to wait", err)
			}
			refused = name
			break
		}
	}
	if refused == "" || refused == names[0] {
		t.Fatalf("refused is %q, want one after the first", refused)
	}
	if remembered(refused) != nil {
		t.Errorf("%s is stored although it was refused", refused)
	}
	for _, name := range []string{"p:/carol", names[0], "q:/mallory"} {
		if err := s.Send(name, "us:/alice/inbox", liked(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := s.Send(refused, "us:/inbox", `{"id":"p:/waves/1","type":"Wave","actor":"`+refused+`","to":"`+string(vocab.Public)+`"}`); err != nil {
		t.Errorf("an activity for nobody: %v", err)
	}
	s.Later(24 * time.Hour)
	if err := s.Send(refused, "us:/alice/inbox", liked(refused)); err != nil || remembered(refused) == nil {
		t.Errorf("a day later: %v, stored %v", err, remembered(refused))
	}
}
