package engine_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// history is a conversation as a client sees it. The conversation may be closed.
type history struct {
	URI, Status, Predecessor, Successor, ClosedAt string
	Items                                         []struct{ Kind string }
}

func (w *talker) history(t *testing.T) (h history) {
	t.Helper()
	w.want(t, http.StatusOK, w.user.Ask(t, http.MethodGet, w.path, nil)).Decode(t, &h)
	return h
}

// The account of a conversation's host disappears. The first member that notices begins another
// conversation. The other members' copies of the old conversation name the new one.
func TestMembersGoOnWithoutTheirHost(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t)
	host, first, second := newTalker(a, t, "host"), newTalker(b, t, "first"), newTalker(b, t, "second")
	group := host.gather(t, first, second)
	first.send(t, group)
	second.hears(t, 2, 2, "application")

	a.Stop(t)
	if got := first.user.Ask(t, http.MethodPost, first.path+"/messages", map[string]any{"message": group.Message()}); got.Status != http.StatusServiceUnavailable {
		t.Errorf("while the host is away a message is answered %d %s", got.Status, got.Body)
	}
	if h := first.history(t); h.Status != "active" {
		t.Errorf("while the host is away the conversation is %s", h.Status)
	}
	a.Start(t)
	if _, err := a.SQL(t, "lightweb").ExecContext(t.Context(), `UPDATE users SET state = 'deleted' WHERE username = 'host'`); err != nil {
		t.Fatal(err)
	}
	got := first.user.Ask(t, http.MethodPost, first.path+"/messages", map[string]any{"message": group.Message()})
	if !isRefused(got, http.StatusConflict, "conversation_closed") {
		t.Fatalf("without the host a message is answered %d %s", got.Status, got.Body)
	}
	first.hears(t, 2, 2, "application")
	if h := second.history(t); h.Status != "active" {
		t.Errorf("before it has met that, it is %s for the other one", h.Status)
	}

	before, uri := first.path, first.history(t).URI
	first.device, second.device = mlstest.NewDevice(first.user.ID, time.Now()), mlstest.NewDevice(second.user.ID, time.Now())
	second.publish(t)
	group = mlstest.NewGroup(first.device)
	made := first.user.Ask(t, http.MethodPost, "/api/conversations", map[string]any{"groupInfo": group.Info(first.device), "predecessor": before[strings.LastIndexByte(before, '/')+1:]})
	first.path = first.want(t, http.StatusCreated, made).Header.Get("Location")
	first.claim(t, second)
	group, _ = first.commit(t, group, mlstest.Change{Add: []*mlstest.Device{second.device}})
	next := first.history(t)
	if next.Predecessor != uri {
		t.Errorf("the successor names %q, want %q", next.Predecessor, uri)
	}
	enginetest.Eventually(t, "the other one's copy names the successor", func() bool {
		h := second.history(t)
		return h.Status == "closed" && h.Successor == next.URI && h.Items[0].Kind == "successor" && h.Items[1].Kind == "closed"
	})
	second.hears(t, 2, 2, "application")
	second.join(t)
	second.send(t, group)
	first.hears(t, 2, 2, "application")
	if h := second.history(t); h.Predecessor != uri {
		t.Errorf("the other one's successor names %q, want %q", h.Predecessor, uri)
	}
}
