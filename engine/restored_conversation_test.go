package engine_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// The members have messages, and the group of a reset, that are newer than the host's backup.
// After a restore, they accept the messages of the restored host. They also do so after a second
// restore of the same backup.
func TestMembersTakeWhatComesAfterTheirHostIsRestored(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t)
	host, near, far := newTalker(a, t, "mlshost"), newTalker(a, t, "mlsnear"), newTalker(b, t, "mlsfar")
	group := host.gather(t, near, far)
	all := []*talker{host, near, far}
	last := host.send(t, group)
	for _, w := range all {
		w.hears(t, 2, last.Seq, "application")
	}
	file := filepath.Join(enginetest.Dir(t), "backup.tar.gz")
	runAll(t, a, []command{{"backup -q " + file, 0, ""}})

	for range 3 {
		last = far.send(t, group)
	}
	for _, w := range all {
		w.hears(t, 3, last.Seq, "application", "application", "application")
	}
	host.beginAnew(t, all)
	for range 2 {
		a.Stop(t)
		runAll(t, a, []command{{"restore " + file + " --user mlshost --replace --yes -q", 0, ""}})
		a.Start(t)
		if c := host.state(t, host.generation(t), 1); c.Status != "reset_pending" || c.LastSeq <= last.Seq {
			t.Errorf("after the restore the host sees %+v, want it to be past number %d", c, last.Seq)
		}
		group = host.beginAnew(t, all)
		first := host.send(t, group)
		for _, w := range []*talker{near, far} {
			w.device = mlstest.NewDevice(w.user.ID, time.Now())
			var commit []byte
			commit, group = group.Rejoin(w.device)
			w.want(t, http.StatusCreated, w.user.AskOnce(t, http.MethodPost, w.path+"/external-commit", "back", map[string]any{"commit": commit, "groupInfo": group.Info(w.device)}))
			last = w.send(t, group)
		}
		for _, w := range all {
			w.hears(t, first.Seq, last.Seq, "application", "commit", "application", "commit", "application")
			if c := w.state(t, host.generation(t), 2); c.Status != "active" {
				t.Errorf("%s sees %+v", w.user.Name, c)
			}
		}
	}
}

// generation returns the generation of the conversation that the user's server shows.
func (w *talker) generation(t *testing.T) int32 {
	t.Helper()
	var c conversation
	w.want(t, http.StatusOK, w.user.Ask(t, http.MethodGet, w.path, nil)).Decode(t, &c)
	return c.Generation
}

// beginAnew resets the conversation and waits until all talkers see the reset. It returns the next
// group.
func (w *talker) beginAnew(t *testing.T, all []*talker) *mlstest.Group {
	t.Helper()
	var reset struct{ GroupID string }
	w.want(t, http.StatusAccepted, w.user.Ask(t, http.MethodPost, w.path+"/reset", map[string]any{})).Decode(t, &reset)
	group := mlstest.NewGroupWith(reset.GroupID, w.device)
	w.want(t, http.StatusCreated, w.user.Ask(t, http.MethodPost, w.path+"/reset", map[string]any{"groupInfo": group.Info(w.device)}))
	generation := w.generation(t)
	for _, other := range all {
		if c := other.state(t, generation, 0); c.Status != "active" || c.GroupID != reset.GroupID {
			t.Fatalf("after the reset %s sees %+v", other.user.Name, c)
		}
	}
	return group
}
