package server_test

import (
	"net/http"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// A member's server finds that the host or the conversation is gone. The conversation then ends
// for the member. Only the host's own server can say that it is gone. A server that does not
// answer ends nothing.
func TestAConversationEndsWithAHostThatIsGone(t *testing.T) {
	t.Parallel()
	const host = "/users/dora"
	gone := func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		rw.WriteHeader(http.StatusGone)
	}
	tombstone := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", vocab.ActivityJSON)
		_, _ = rw.Write(vocab.Doc{"id": "http://" + r.Host + host, "type": "Tombstone"}.JSON()) // the client may have hung up
	}
	answer := func(status int) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", isProblem)
			rw.WriteHeader(status)
			_, _ = rw.Write([]byte(`{"type":"https://p/whatever"}`)) // the client may have hung up
		}
	}
	elsewhere := func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "http://127.0.0.3:1/gone", http.StatusFound)
	}
	for name, c := range map[string]struct {
		// if actor is nil, the actor still exists
		post, conversation, actor http.HandlerFunc
		want                      int
		closed                    bool
	}{
		"the host is gone":                  {gone, gone, gone, 409, true},
		"its server does not show it":       {answer(404), answer(404), gone, 409, true},
		"a tombstone is in its place":       {answer(404), answer(404), tombstone, 409, true},
		"the conversation is gone":          {gone, gone, nil, 409, true},
		"one answer was wrong":              {gone, answer(200), nil, 410, false},
		"the conversation is not shown":     {answer(404), gone, nil, 404, false},
		"the server is broken":              {answer(500), gone, gone, 503, false},
		"the actor is not shown":            {gone, gone, answer(404), 410, false},
		"the actor cannot be asked":         {gone, gone, answer(503), 410, false},
		"the actor is somewhere else, gone": {gone, gone, elsewhere, 410, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newAway(t)
			w.peer.Handle(w.uri+"/messages", c.post)
			w.peer.Handle(w.uri, c.conversation)
			if c.actor != nil {
				w.peer.Handle(host, c.actor)
			}
			_, group := w.group.Commit(w.host, mlstest.Change{})
			w.post(w.him(), w.his+"/messages", map[string]any{"message": group.Message()}).want(t, c.want)
			var v shown
			w.get(w.his, bearerToken(w.tokens[w.him()])).want(t, 200).decode(t, &v)
			if (v.Status == user.StatusClosed) != c.closed || (v.ClosedAt != nil) != c.closed {
				t.Errorf("it is %s, closed at %v", v.Status, v.ClosedAt)
			}
			asked := len(w.peer.Asked())
			w.get(w.his+"/log", bearerToken(w.tokens[w.him()])).want(t, 200)
			next := mlstest.NewGroup(w.mine)
			successor := map[string]any{"groupInfo": next.Info(w.mine), "predecessor": w.where}
			if !c.closed {
				w.post(w.him(), "/api/conversations", successor).want(t, 409)
				return
			}
			w.post(w.him(), w.his+"/messages", map[string]any{"message": group.Message()}).want(t, 409)
			if now := len(w.peer.Asked()); now != asked {
				t.Errorf("a host that is gone is asked %q", w.peer.Asked()[asked:])
			}
			var n shown
			w.post(w.him(), "/api/conversations", successor).want(t, 201).decode(t, &n)
			w.get(w.his, bearerToken(w.tokens[w.him()])).want(t, 200).decode(t, &v)
			if n.Predecessor != w.peer.Origin+w.uri || v.Successor != n.URI || len(v.Items) != 2 || v.Items[0].Kind != user.EntrySuccessor || v.Items[1].Kind != user.EntryClosed {
				t.Errorf("after %+v comes %+v", v, n)
			}
		})
	}
}

// The engine asks the host for missing entries, and so finds that the host is gone.
func TestAHostThatIsGoneIsMetByALogThatHasAGap(t *testing.T) {
	t.Parallel()
	w := newAway(t)
	w.peer.Answer(w.uri+"/log", http.StatusGone)
	w.peer.Answer("/users/dora", http.StatusGone)
	w.tellOf(w.his, 4)
	for range 10_000 {
		var v shown
		if w.get(w.his, bearerToken(w.tokens[w.him()])).want(t, 200).decode(t, &v); v.Status == user.StatusClosed {
			return
		}
	}
	t.Error("it is never closed")
}
