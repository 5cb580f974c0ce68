package engine_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// talker is a member of a conversation with one device. The field path is the address of the
// conversation on the member's own server.
type talker struct {
	user   *enginetest.User
	device *mlstest.Device
	path   string
}

func newTalker(i *enginetest.Instance, t *testing.T, name string) *talker {
	t.Helper()
	u := i.CreateUser(t, name)
	w := &talker{user: u, device: mlstest.NewDevice(u.ID, time.Now())}
	w.publish(t)
	return w
}

// publish publishes a key package of the device.
func (w *talker) publish(t *testing.T) {
	t.Helper()
	packages := []any{map[string]any{"deviceId": uuid.NewString(), "content": w.device.Package}}
	w.want(t, http.StatusCreated, w.user.Ask(t, http.MethodPost, "/api/keypackages", map[string]any{"keyPackages": packages}))
}

func (w *talker) want(t *testing.T, status int, got enginetest.Answer) enginetest.Answer {
	t.Helper()
	if got.Status != status {
		t.Fatalf("%s is answered %d %s, want %d", w.user.Name, got.Status, got.Body, status)
	}
	return got
}

// claim claims a key package of another talker. It checks that the package belongs to that
// talker's device.
func (w *talker) claim(t *testing.T, of *talker) {
	t.Helper()
	if got := claimPackage(t, w.user, of.user.ID); got.Content != base64.StdEncoding.EncodeToString(of.device.Package) {
		t.Fatalf("%s claims another key package than that of %s's device", w.user.Name, of.user.Name)
	}
}

// host begins a conversation with the device as its first member. It returns the group.
func (w *talker) host(t *testing.T) *mlstest.Group {
	t.Helper()
	group := mlstest.NewGroup(w.device)
	w.path = w.want(t, http.StatusCreated, w.user.Ask(t, http.MethodPost, "/api/conversations", map[string]any{"groupInfo": group.Info(w.device)})).Header.Get("Location")
	return group
}

// gather begins a conversation with other talkers, who follow the host and join it at epoch
// 1. It returns the group.
func (w *talker) gather(t *testing.T, others ...*talker) *mlstest.Group {
	t.Helper()
	group, devices := w.host(t), []*mlstest.Device{}
	for _, other := range others {
		befriend(t, other.user, w.user)
		w.claim(t, other)
		devices = append(devices, other.device)
	}
	group, _ = w.commit(t, group, mlstest.Change{Add: devices})
	for _, other := range others {
		other.join(t)
	}
	return group
}

// commit sends a commit, which ends the epoch. It returns the group of the next epoch and the
// answer.
func (w *talker) commit(t *testing.T, g *mlstest.Group, c mlstest.Change) (*mlstest.Group, accepted) {
	t.Helper()
	commit, next := g.Commit(w.device, c)
	body := map[string]any{"commit": commit, "groupInfo": next.Info(w.device)}
	if len(c.Add) > 0 {
		body["welcomes"] = [][]byte{next.Welcome(c.Add...)}
	}
	var a accepted
	w.want(t, http.StatusCreated, w.user.AskOnce(t, http.MethodPost, w.path+"/commits", uuid.NewString(), body)).Decode(t, &a)
	return next, a
}

// join waits for a Welcome and joins the conversation by it.
func (w *talker) join(t *testing.T) {
	t.Helper()
	var all struct {
		Items []struct{ ID, ConversationID string }
	}
	enginetest.Eventually(t, "a Welcome for "+w.user.Name, func() bool {
		w.user.Ask(t, http.MethodGet, "/api/welcomes", nil).Decode(t, &all)
		return len(all.Items) > 0
	})
	w.path = "/api/conversations/" + all.Items[0].ConversationID
	w.want(t, http.StatusNoContent, w.user.Ask(t, http.MethodPost, "/api/welcomes/"+all.Items[0].ID+"/confirm", nil))
}

func (w *talker) send(t *testing.T, g *mlstest.Group) accepted {
	t.Helper()
	var a accepted
	w.want(t, http.StatusCreated, w.user.Ask(t, http.MethodPost, w.path+"/messages", map[string]any{"message": g.Message()})).Decode(t, &a)
	return a
}

// hears waits until the log has the entry with the number to. It checks the kinds of the entries
// from the number from to that entry.
func (w *talker) hears(t *testing.T, from, to int64, kinds ...string) {
	t.Helper()
	var page struct{ Items []entry }
	enginetest.Eventually(t, fmt.Sprintf("number %d for %s", to, w.user.Name), func() bool {
		got := w.user.Ask(t, http.MethodGet, fmt.Sprintf("%s/log?after=%d", w.path, from-1), nil)
		w.want(t, http.StatusOK, got).Decode(t, &page)
		return len(page.Items) > 0 && page.Items[len(page.Items)-1].Seq >= to
	})
	var got []string
	for i, e := range page.Items {
		if got = append(got, e.Kind); e.Seq != from+int64(i) {
			t.Errorf("after %d comes number %d to %s", from+int64(i)-1, e.Seq, w.user.Name)
		}
	}
	if !slices.Equal(got, kinds) {
		t.Errorf("%s hears %q from %d to %d, want %q", w.user.Name, got, from, to, kinds)
	}
}

// state waits until the conversation has the given generation and epoch. It returns the
// conversation.
func (w *talker) state(t *testing.T, generation int32, epoch int64) (c conversation) {
	t.Helper()
	enginetest.Eventually(t, fmt.Sprintf("epoch %d of generation %d for %s", epoch, generation, w.user.Name), func() bool {
		w.want(t, http.StatusOK, w.user.Ask(t, http.MethodGet, w.path, nil)).Decode(t, &c)
		return c.Generation == generation && c.Epoch == epoch
	})
	return c
}
