package event

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestGroupsOfForgottenStreamsAreForgotten(t *testing.T) {
	t.Parallel()
	alice, bob := dbtest.Name(t, "alice"), dbtest.Name(t, "bob")
	e := NewEmitter(Deps{})
	g := newGroups(e)
	for _, u := range []vocab.Username{alice, bob} {
		e.streams[u] = &stream{user: u}
		g.marks[groupKey{u, "llm"}], g.unread[u], g.hung[u] = &groupMark{}, true, time.Now()
	}
	e.forgetStream(alice)
	e.readAgain(rest{user: alice}) // this entry comes late: the stream was at rest before it was forgotten
	for range othersEvery {
		g.chooseStreams(nil)
	}
	if g.marks[groupKey{alice, "llm"}] != nil || g.unread[alice] || !g.hung[alice].IsZero() || e.streams[alice] != nil {
		t.Error("something of the forgotten stream is left")
	}
	if g.marks[groupKey{bob, "llm"}] == nil || !g.unread[bob] {
		t.Error("the groups of another stream are forgotten")
	}
}
