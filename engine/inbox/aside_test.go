package inbox_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

// While the engine asks another server about a verified activity, the activity's request reserves
// memory for its body only.
func TestWhatWaitsForAnotherServerHoldsItsBodyAlone(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	asked, answer := make(chan struct{}), make(chan struct{})
	const post = `{"@context":"https://www.w3.org/ns/activitystreams","id":"q:/notes/1","type":"Note","attributedTo":"q:/dave","to":"as:Public","content":"hi"}`
	s.Handle("q:/notes/1", func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		w.Header().Set("Content-Type", vocab.ActivityJSON)
		_, _ = w.Write([]byte(s.Long(post))) // the write succeeds: the client stays connected
	})
	body := `{"id":"p:/a/1","type":"Announce","actor":"p:/carol","to":["as:Public","p:/carol/followers"],"object":"q:/notes/1","x":"` + strings.Repeat("x", 100_000) + `"}`
	r, done := s.Request("p:/carol", shared, body), make(chan error)
	go func() {
		done <- s.Inbox.Receive(context.WithoutCancel(t.Context()), r, []byte(s.Long(body)), vocab.Username{})
	}()
	<-asked
	if n := s.Inbox.Reserved(); n != 0 {
		t.Errorf("%d bytes are held while the other server is asked, want none", n)
	}
	close(answer)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	eventually(t, "the post is there", func() bool { return len(s.Column(t, s.Alice, `SELECT uri FROM objects`)) == 1 })
	if n := s.Inbox.Reserved(); n != 0 {
		t.Errorf("%d bytes are held at the end, want none", n)
	}
}
