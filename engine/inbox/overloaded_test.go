package inbox_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The post's server has answered, but no memory is left for the boost. The engine tells the
// booster that this server is the cause and when to come again. It does not tell the booster that
// the post's server does not answer.
func TestABoostForWhichThereIsNoMemoryBlamesNoOtherServer(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	s.Follows("p:/carol")
	var release func()
	s.Handle("p:/notes/1", func(w http.ResponseWriter, _ *http.Request) {
		release = s.Inbox.FillMemory(0)
		w.Header().Set("Content-Type", vocab.ActivityJSON)
		_, _ = w.Write([]byte(s.Long(strings.Replace(post, "{", `{"@context":"https://www.w3.org/ns/activitystreams",`, 1)))) // the write succeeds: the client stays connected
	})
	err := s.Send("p:/carol", shared, `{"id":"p:/acts/b","type":"Announce","actor":"p:/carol","to":"as:Public","object":"p:/notes/1"}`)
	release()
	if e := fault.Of(err); !fault.IsOurs(err) || fault.Code(err) != "overloaded" || e.RetryAfter == 0 {
		t.Errorf("err = %v with the code %s, want overloaded and a time to come again", err, fault.Code(err))
	}
}
