package engine_test

import (
	"net/http"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// A conversation has members on its host's server and on another server, which is away for a
// while. The test follows the conversation from its first member to the group after a reset.
func conversationOnTwoServers(t *testing.T, a, b *enginetest.Instance) {
	host, near, far := newTalker(a, t, "mlshost"), newTalker(a, t, "mlsnear"), newTalker(b, t, "mlsfar")
	all := []*talker{host, near, far}
	hear := func(from, to int64, kinds ...string) {
		t.Helper()
		for _, w := range all {
			w.hears(t, from, to, kinds...)
		}
	}
	group := host.gather(t, near, far)
	for _, w := range all {
		if c := w.state(t, 0, 1); len(c.Members) != 3 {
			t.Errorf("%s sees the members %v", w.user.Name, c.Members)
		}
		w.send(t, group)
	}
	hear(2, 4, "application", "application", "application")

	b.Stop(t)
	near.send(t, group)
	group, _ = near.commit(t, group, mlstest.Change{})
	host.send(t, group)
	const giveUp = `UPDATE deliveries SET status = 'failed' WHERE status = 'pending' AND host <> '' AND lease_owner IS NULL RETURNING id`
	var given []string
	enginetest.Eventually(t, "three deliveries are given up", func() bool {
		given = append(given, host.user.Column(t, giveUp)...)
		return len(given) == 3
	})
	b.Start(t)
	far.state(t, 0, 1)
	group, _ = host.commit(t, group, mlstest.Change{})
	hear(5, 8, "application", "commit", "application", "commit")
	if n := b.Metric(t, "lightweb_mls_gap_total"); n < 1 {
		t.Errorf("%g messages came while earlier ones were missing", n)
	}
	far.send(t, group)
	hear(9, 9, "application")

	group, _ = host.commit(t, group, mlstest.Change{Remove: []*mlstest.Device{near.device}})
	all = []*talker{host, far}
	enginetest.Eventually(t, "the removed member is told", func() bool {
		return isRefused(near.user.Ask(t, http.MethodGet, near.path+"/log", nil), http.StatusForbidden, "not_member")
	})
	if got := near.user.Ask(t, http.MethodPost, near.path+"/messages", map[string]any{"message": group.Message()}); !isRefused(got, http.StatusForbidden, "not_member") {
		t.Errorf("the removed member sends, and is answered %d %s", got.Status, got.Body)
	}
	far.send(t, group)
	hear(10, 11, "commit", "application")

	var reset struct{ GroupID string }
	host.want(t, http.StatusAccepted, host.user.Ask(t, http.MethodPost, host.path+"/reset", map[string]any{})).Decode(t, &reset)
	group = mlstest.NewGroupWith(reset.GroupID, host.device)
	host.want(t, http.StatusCreated, host.user.Ask(t, http.MethodPost, host.path+"/reset", map[string]any{"groupInfo": group.Info(host.device)}))
	for _, w := range all {
		if c := w.state(t, 1, 0); c.Status != "active" || c.GroupID != reset.GroupID {
			t.Errorf("after the reset %s sees %+v", w.user.Name, c)
		}
	}
	commit, group := group.Rejoin(far.device)
	var back accepted
	far.want(t, http.StatusCreated, far.user.AskOnce(t, http.MethodPost, far.path+"/external-commit", "back", map[string]any{"commit": commit, "groupInfo": group.Info(far.device)})).Decode(t, &back)
	last := far.send(t, group)
	hear(back.Seq, last.Seq, "commit", "application")
}
