package engine_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/explain"
)

// shaky is a peer whose inbox answers 500 while down is set.
type shaky struct {
	*peertest.Peer
	down  atomic.Bool
	taken atomic.Int32
}

func newShaky(t *testing.T, address, actor string) (*shaky, *peertest.Actor) {
	p := &shaky{Peer: peertest.New(t, address)}
	who := p.Actor(actor)
	p.Handle(actor+"/inbox", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "Shaky/1.0")
		w.Header().Set("Set-Cookie", "session=secret")
		if p.down.Load() {
			http.Error(w, "\x1b[2J out for lunch", http.StatusInternalServerError)
			return
		}
		p.taken.Add(1)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("queued")) // the engine may have hung up
	})
	return p, who
}

// alice posts to two servers, one of which is down. The API and the commands show that one server
// has the post and why the other does not. When the other server is up again, and the operator
// runs deliver retry, it gets the post.
func TestDeliveriesAreSeenAndSteered(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t)
	alice := home.CreateUser(t, "alice")
	home.CreateUser(t, "carol")
	_, bob := newShaky(t, "127.0.0.2", "/bob")
	ill, dora := newShaky(t, "127.0.0.3", "/dora")
	illHost := dora.ID.Host()
	ill.down.Store(true)
	post := func() enginetest.Dispatched {
		return alice.Do(t, "CreateNote", map[string]any{"content": "hello", "visibility": "direct", "to": []any{bob.ID, dora.ID}})
	}
	type job struct {
		JobID, Status string
		Counts        user.JobCounts
		Deliveries    []struct {
			InboxURL, Status, ResponseBody string
			Attempts, ResponseStatus       int
			ResponseHeaders                map[string]string
		}
	}
	see := func(activity string) (j job) {
		t.Helper()
		var page struct{ Items []job }
		alice.Ask(t, http.MethodGet, "/api/deliveries?activity="+activity, nil).Decode(t, &page)
		if len(page.Items) != 1 {
			t.Fatalf("of %s there are %d jobs, want one", activity, len(page.Items))
		}
		alice.Ask(t, http.MethodGet, "/api/deliveries/"+page.Items[0].JobID, nil).Decode(t, &j)
		return j
	}
	await := func(activity, status string) (j job) {
		t.Helper()
		enginetest.Eventually(t, activity+" is "+status, func() bool { j = see(activity); return j.Status == status })
		return j
	}

	first := post().ActivityID
	j := await(first, user.JobPartial)
	if j.Counts != (user.JobCounts{Total: 2, Pending: 1, Delivered: 1}) || len(j.Deliveries) != 2 {
		t.Errorf("the job is %+v", j)
	}
	if d := j.Deliveries[1]; d.InboxURL != string(dora.ID)+"/inbox" || d.ResponseStatus != 500 || d.Attempts != 1 || d.ResponseBody != "\ufffd[2J out for lunch\n" {
		t.Errorf("to the one that is down: %+v", d)
	}

	if d := j.Deliveries[0]; d.ResponseStatus != 202 || d.ResponseBody != "queued" {
		t.Errorf("to the one that has it: %+v", d)
	}
	for _, d := range j.Deliveries {
		if h := d.ResponseHeaders; h["Server"] != "Shaky/1.0" || h["Content-Type"] != "text/plain; charset=utf-8" || h["Set-Cookie"] != "" || h["Date"] == "" {
			t.Errorf("of the answer of %s the header %v is kept", d.InboxURL, h)
		}
	}

	var traced struct{ Users []explain.UserTrace }
	home.Run(t, "activity", "show", first, "--json").Decode(t, &traced)
	if len(traced.Users) != 1 || len(traced.Users[0].Jobs) != 1 || traced.Users[0].Jobs[0].Status != user.JobPartial || traced.Users[0].Jobs[0].Counts != j.Counts ||
		string(traced.Users[0].Jobs[0].Deliveries[1].Inbox) != string(bob.ID)+"/inbox" {
		t.Errorf("activity show tells %+v, want that bob has it", traced)
	}
	var list admin.DeliveryList
	home.Run(t, "deliver", "list", "--all", "--host", illHost, "--status", "partial", "--since", "1h", "--json").Decode(t, &list)
	if len(list.Jobs) != 1 || list.Jobs[0].ID.String() != j.JobID || string(list.Jobs[0].Activity) != first || list.Jobs[0].User.String() != "alice" || list.Jobs[0].JobCounts != j.Counts {
		t.Errorf("deliver list tells %+v", list)
	}
	if lines := home.Run(t, "deliver", "list", "alice", "--json=lines"); strings.Count(lines.Stdout, "\n") != 1 || !strings.HasPrefix(lines.Stdout, `{"user":"alice","job":"`+j.JobID) {
		t.Errorf("deliver list --json=lines wrote %s", lines.Stdout)
	}
	var shown struct{ Jobs []admin.ShownDeliveries }
	for _, id := range []string{first, j.JobID} {
		home.Run(t, "deliver", "show", id, "--json").Decode(t, &shown)
		if len(shown.Jobs) != 1 || len(shown.Jobs[0].Deliveries) != 2 || shown.Jobs[0].Deliveries[0].Status != "delivered" || shown.Jobs[0].Deliveries[1].LastStatus != 500 ||
			len(shown.Jobs[0].Deliveries[1].IdempotencyKey) != 32 {
			t.Errorf("deliver show %s tells %+v", id, shown)
		}
		if out := home.Run(t, "deliver", "show", id, "--json").Stdout; !strings.Contains(out, `"answer":"queued"`) || strings.Count(out, `"Server":"Shaky/1.0"`) != 2 || strings.Contains(out, "secret") {
			t.Errorf("deliver show %s --json wrote %s", id, out)
		}
	}
	var status admin.DeliveryStatus
	home.Run(t, "deliver", "status", "alice", "carol", "--json").Decode(t, &status)
	if status.Users != 2 || status.Counts != j.Counts || len(status.States) != 2 || status.States[1].Host != illHost || status.States[1].Status != "pending" || status.States[1].NextAt == nil || status.States[1].Error == "" {
		t.Errorf("deliver status tells %+v", status)
	}

	retry := func(code int, args ...string) (r admin.RetryReport) {
		t.Helper()
		ran := home.Run(t, append([]string{"deliver", "retry", "--json"}, args...)...)
		if ran.Code != code {
			t.Fatalf("deliver retry %q ended with %d, want %d\n%s", args, ran.Code, code, ran.Stderr)
		}
		ran.Decode(t, &r)
		return r
	}
	if r := retry(0, "--all", "--dry-run"); r.Matched != 1 || r.Requeued != 0 || !r.DryRun || len(r.Hosts) != 1 || r.Hosts[0].Host != illHost {
		t.Errorf("deliver retry --dry-run tells %+v", r)
	}
	if r := retry(0, "alice", "--status", "failed,parked"); r.Matched != 0 || len(r.Hosts) != 0 {
		t.Errorf("of what there is not, deliver retry tells %+v", r)
	}
	ill.down.Store(false)
	clockSetBack := func() {
		alice.Column(t, `UPDATE deliveries SET updated_at = now() + interval '1 day' WHERE status = 'pending' RETURNING ''`)
	}
	clockSetBack()
	if r := retry(0, "alice", "--host", illHost); r.Matched != 1 || r.Requeued != 1 {
		t.Errorf("deliver retry tells %+v", r)
	}
	if j := await(first, user.DeliveryDelivered); j.Deliveries[1].Attempts != 2 {
		t.Errorf("after the retry the job is %+v", j)
	}

	ill.down.Store(true)
	second := post().ActivityID
	await(second, user.JobPartial)
	clockSetBack()
	if r := retry(3, "--all", "--wait"); r.Matched != 1 || r.Failed != 1 || r.Delivered != 0 || r.Hosts[0].Error == "" || r.Hosts[0].NextAt == nil {
		t.Errorf("deliver retry --wait tells %+v, want that it failed again", r)
	}
	alice.Column(t, `UPDATE deliveries SET status = 'parked' WHERE status = 'pending' RETURNING ''`)
	if r := retry(3, "--all", "--wait"); r.Failed != 1 {
		t.Errorf("while its host is down a parked delivery is %+v", r)
	}
	alice.Column(t, `UPDATE deliveries SET status = 'parked' WHERE status = 'pending' RETURNING ''`)
	ill.down.Store(false)
	if r := retry(0, "--all", "--wait", "--reset-attempts"); r.Matched != 1 || r.Delivered != 1 || r.Failed != 0 || r.Requeued != 1 {
		t.Errorf("deliver retry --wait tells %+v, want that it was delivered", r)
	}
	if j := see(second); j.Status != user.DeliveryDelivered || j.Deliveries[1].Attempts != 1 {
		t.Errorf("after that the job is %+v", j)
	}

	ill.down.Store(true)
	third := post().ActivityID
	await(third, user.JobPartial)
	alice.Column(t, `UPDATE deliveries SET lease_owner = 'serve:other', next_at = now() + interval '1 minute' WHERE status = 'pending' RETURNING ''`)
	var drop admin.DropReport
	home.Run(t, "deliver", "drop", "--activity", third, "--yes", "--json").Decode(t, &drop)
	if drop.Matched != 0 || drop.Delivering != 1 || see(third).Status != user.DeliveryDelivering {
		t.Errorf("of what another process sends deliver drop tells %+v", drop)
	}
	if r := retry(0, "--all", "--wait"); r.Matched != 0 {
		t.Errorf("and deliver retry %+v", r)
	}
	alice.Column(t, `UPDATE deliveries SET lease_owner = NULL, next_at = now() + interval '1 hour' WHERE status = 'pending' RETURNING ''`)
	alice.Column(t, `UPDATE deliveries SET host = 'xn--bcher-kva.example' WHERE status = 'pending' RETURNING ''`)
	for _, args := range [][]string{{"--host", "Bücher.example", "--dry-run"}, {"--host", "xn--bcher-kva.example:443", "--dry-run"}, {see(third).JobID, "--yes"}} {
		home.Run(t, append([]string{"deliver", "drop", "--json"}, args...)...).Decode(t, &drop)
		if drop.Matched != 1 || drop.DryRun == (drop.Dropped == 1) {
			t.Errorf("deliver drop %q tells %+v", args, drop)
		}
	}
	if j := see(third); j.Status != user.DeliveryDelivered || j.Counts.Skipped != 1 {
		t.Errorf("what was dropped is %+v", j)
	}
	if got := ill.taken.Load(); got != 2 {
		t.Errorf("the peer took %d posts, want two", got)
	}

	unlock, err := home.DB(t).Instance.Locks.Retry(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	runAll(t, home, []command{
		{"deliver", 64, "needs a subcommand"},
		{"deliver status", 64, "give either users or --all"},
		{"deliver status nobody_here", 67, "no user"},
		{"deliver status --all -q", 0, ""},
		{"deliver list alice --all", 64, "give either users or --all"},
		{"deliver list alice --limit 0", 64, "--limit"},
		{"deliver list alice --status done", 64, "--status"},
		{"deliver list alice --json=maybe", 64, "true, false or lines"},
		{"deliver list alice --activity nothing", 65, "URI"},
		{"deliver list alice --since soon", 64, "duration"},
		{"deliver show", 64, "needs ACTIVITY|JOB"},
		{"deliver show nothing", 64, "neither"},
		{"deliver show https://nowhere.example/1", 66, "is owed to anybody"},
		{"deliver show 0192d3a4-0000-7000-8000-000000000000", 66, "no delivery job"},
		{"deliver drop", 64, "give either a job"},
		{"deliver drop --host " + illHost, 64, "--yes"},
		{"deliver drop --host https://x --dry-run", 64, "is no host"},
		{"deliver list --all --host x/y", 64, "is no host"},
		{"deliver retry --all --host a@x --dry-run", 64, "is no host"},
		{"deliver drop --host nowhere.example --yes -q", 0, ""},
		{"deliver drop 0192d3a4-0000-7000-8000-000000000000 --yes", 66, "no delivery job"},
		{"deliver drop --activity " + alice.ID + "/activities/1 --yes", 66, "is owed to anybody"},
		{"deliver retry", 64, "give either users or --all"},
		{"deliver retry nobody_here", 67, "no user"},
		{"deliver retry --all --status skipped", 64, "--status"},
		{"deliver retry --all --limit 0", 64, "--limit"},
		{"deliver retry --all --concurrency 0", 64, "--concurrency"},
		{"deliver retry --all --dry-run -q", 0, ""},
		{"deliver retry --all", 75, "another 'lightweb deliver retry' runs (process "},
		{"deliver retry --all --wait --wait-lock 10ms", 75, "another 'lightweb deliver retry' runs (process "},
	})
}

// deliver retry sends nothing to a paused host. It reports that the host's deliveries wait.
func TestARetryLeavesAPausedHostAlone(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t)
	alice := home.CreateUser(t, "alice")
	peer, dora := newShaky(t, "127.0.0.3", "/dora")
	host := dora.ID.Host()
	runAll(t, home, []command{{"host pause " + host + " -q", 0, ""}})
	enginetest.Eventually(t, "the running server knows", func() bool { return home.Metric(t, `lightweb_delivery_hosts{state="paused"}`) == 1 })
	post := alice.Do(t, "CreateNote", map[string]any{"content": "held back", "visibility": "direct", "to": []any{dora.ID}}).ActivityID
	enginetest.Eventually(t, "a delivery waits", func() bool {
		return alice.Column(t, `SELECT count(*) FROM deliveries WHERE status = 'pending'`)[0] == "1"
	})

	for _, args := range []string{"--wait", "--dry-run", ""} {
		var r admin.RetryReport
		ran := home.Run(t, append([]string{"deliver", "retry", "alice", "--json"}, strings.Fields(args)...)...)
		ran.Decode(t, &r)
		if ran.Code != 0 || r.Matched != 1 || r.Paused != 1 || r.Delivered+r.Failed != 0 || len(r.Hosts) != 1 || !r.Hosts[0].Paused {
			t.Errorf("deliver retry %s ended with %d and tells %+v", args, ran.Code, r)
		}
		if got := home.Run(t, append([]string{"deliver", "retry", "alice"}, strings.Fields(args)...)...); !strings.HasSuffix(got.Stdout, "\tpaused: waits for 'host resume'\n") {
			t.Errorf("deliver retry %s wrote %q", args, got.Stdout)
		}
	}
	if got := peer.taken.Load(); got != 0 {
		t.Errorf("the paused host took %d posts, want none", got)
	}
	runAll(t, home, []command{{"host resume " + host + " -q", 0, ""}})
	delivered(t, alice, post, false)
}

// An inbox that is gone is not a failure. deliver retry does not try it again, and does not ask
// the operator to do anything.
func TestARetryToAGoneInboxHasNotFailed(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t)
	alice := home.CreateUser(t, "alice")
	peer, dora := newShaky(t, "127.0.0.3", "/dora")
	peer.down.Store(true)
	alice.Do(t, "CreateNote", map[string]any{"content": "hello", "visibility": "direct", "to": []any{dora.ID}})
	enginetest.Eventually(t, "a delivery waits", func() bool {
		return alice.Column(t, `SELECT count(*) FROM deliveries WHERE status = 'pending' AND attempts = 1`)[0] == "1"
	})
	peer.Handle("/dora/inbox", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	var r admin.RetryReport
	ran := home.Run(t, "deliver", "retry", "alice", "--wait", "--json")
	ran.Decode(t, &r)
	if ran.Code != 0 || r.Matched != 1 || r.Skipped != 1 || r.Failed != 0 || len(r.Hosts) != 1 || r.Hosts[0].Skipped != 1 || r.Hosts[0].Failed != 0 || r.Hosts[0].Error == "" {
		t.Errorf("deliver retry --wait ended with %d and tells %+v, want 0 and one skipped\n%s", ran.Code, r, ran.Stderr)
	}
	if got := alice.Column(t, `SELECT status FROM deliveries`); got[0] != "skipped" {
		t.Errorf("the delivery is %s, want skipped", got)
	}
}
