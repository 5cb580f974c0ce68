package engine_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// The engine is killed while it accepts a commit. The client repeats the request, and the engine
// accepts the same commit: each epoch has exactly one (conversations.md 3.e, row 15).
// LIGHTWEB_CRASH_COMMIT_ROUNDS sets how often the engine is killed (default 20).
func TestRow15ACommitIsAcceptedOnceWheneverTheEngineIsKilled(t *testing.T) {
	t.Parallel()
	c := newCommitCrash(t)
	for range c.rounds {
		asked := c.begin(t)
		c.home.Kill()
		first := <-asked
		c.home.Start(t)
		c.repeat(t, first)
	}
	c.check(t)
}

// Row 15 of docs/conversations.md, Cases and their tests. The engine is killed after it stored a
// commit and before it answers the client. The repeated request gets the stored answer.
// LIGHTWEB_CRASH_COMMIT_ROUNDS sets how often the engine is killed (default 20).
func TestAStoredAnswerIsGivenWhenTheEngineIsKilledBeforeItsReply(t *testing.T) {
	t.Parallel()
	c := newCommitCrash(t)
	for round := range c.rounds {
		c.holdReplies(t)
		asked := c.begin(t)
		enginetest.Eventually(t, "a commit whose reply is held", func() bool { return c.count(t, waitsInCommit) > 0 })
		c.home.Kill()
		if first := <-asked; first != 0 {
			t.Fatalf("commit %d was answered %d before the engine was killed", round, first)
		}
		c.freeReplies(t)
		enginetest.Eventually(t, "the commit in the log", func() bool { return c.count(t, `SELECT count(*) FROM mls_log`) == round+1 })
		c.home.Start(t)
		c.repeat(t, 0)
		if n := c.home.Metric(t, "lightweb_mls_idempotent_replays_total"); n != 1 {
			t.Fatalf("commit %d: %v requests got a stored answer, want 1", round, n)
		}
	}
	c.check(t)
	t.Logf("%d rounds: each time the program got the stored answer", c.rounds)
}

// waitsInCommit counts the transactions that have written to a log and wait in COMMIT for a
// standby. Such a transaction is already on the disk.
const waitsInCommit = `SELECT count(DISTINCT pid) FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE wait_event = 'SyncRep' AND relation = 'mls_log'::regclass`

// commitCrash is an engine that is killed while it accepts the commits of a device.
type commitCrash struct {
	rounds int
	home   *enginetest.Instance
	alice  *enginetest.User
	device *mlstest.Device
	group  *mlstest.Group
	path   string
	ask    func(into any) int // sends the request of the round
	epoch  int                // the epoch that the commit of the round begins
	probed chan error         // receives the error of the probe of holdReplies
}

func newCommitCrash(t *testing.T) *commitCrash {
	c := &commitCrash{rounds: amount(t, "LIGHTWEB_CRASH_COMMIT_ROUNDS", "20"), home: enginetest.Start(t)}
	c.alice = c.home.CreateUser(t, "alice")
	c.device = mlstest.NewDevice(c.alice.ID, time.Now())
	c.group = mlstest.NewGroup(c.device)
	var made struct{ ID string }
	if status := askJSON(t, c.alice, http.MethodPost, "/api/conversations", "make", map[string]any{"groupInfo": c.group.Info(c.device)}, &made); status != http.StatusCreated {
		t.Fatalf("the conversation is answered %d", status)
	}
	c.path = "/api/conversations/" + made.ID
	return c
}

// begin sends the next commit. It returns the channel that receives the status of the answer.
func (c *commitCrash) begin(t *testing.T) chan int {
	commit, next := c.group.Commit(c.device, mlstest.Change{})
	c.group, c.epoch = next, c.epoch+1
	key, body := strconv.Itoa(c.epoch), map[string]any{"commit": commit, "groupInfo": next.Info(c.device)}
	c.ask = func(into any) int {
		return askJSON(t, c.alice, http.MethodPost, c.path+"/commits", key, body, into)
	}
	asked := make(chan int)
	go func() { asked <- c.ask(nil) }()
	return asked
}

// repeat sends the commit of the round again. It fails the test unless both answers have the same
// number and epoch.
func (c *commitCrash) repeat(t *testing.T, first int) {
	t.Helper()
	var accepted struct{ Seq, Epoch int }
	if again := c.ask(&accepted); again != http.StatusCreated || accepted.Epoch != c.epoch || accepted.Seq != c.epoch {
		t.Fatalf("commit %d, first answered %d, is answered %d as %+v", c.epoch, first, again, accepted)
	}
}

// check fails the test unless the log has one commit for each round.
func (c *commitCrash) check(t *testing.T) {
	t.Helper()
	var log struct{ Items []struct{ Seq, Epoch int } }
	if status := askJSON(t, c.alice, http.MethodGet, c.path+"/log", "", nil, &log); status != http.StatusOK || len(log.Items) != c.rounds {
		t.Errorf("the log is answered %d with %d entries, want %d", status, len(log.Items), c.rounds)
	}
	for n, e := range log.Items {
		if e.Seq != n+1 || e.Epoch != n {
			t.Errorf("entry %d is %+v", n, e)
		}
	}
}

// holdReplies stops PostgreSQL from replying to COMMIT until freeReplies is called. The
// transaction is on the disk, but PostgreSQL waits for a standby that does not exist.
func (c *commitCrash) holdReplies(t *testing.T) {
	t.Helper()
	c.setStandby(t, "SET synchronous_standby_names = 'nobody'")
	probe, isHeld := c.home.SQL(t, "lightweb"), make(chan struct{})
	c.probed = make(chan error)
	go func() {
		for {
			if _, err := probe.Exec("SELECT pg_logical_emit_message(true, 'probe', '')"); err != nil {
				c.probed <- err
				return
			}
			select {
			case <-isHeld:
				c.probed <- nil
				return
			default:
			}
		}
	}()
	enginetest.Eventually(t, "a COMMIT without a reply", func() bool {
		return c.count(t, `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`) > 0
	})
	close(isHeld)
}

// freeReplies undoes holdReplies.
func (c *commitCrash) freeReplies(t *testing.T) {
	t.Helper()
	c.setStandby(t, "RESET synchronous_standby_names")
	if err := <-c.probed; err != nil {
		t.Fatal(err)
	}
}

func (c *commitCrash) setStandby(t *testing.T, how string) {
	t.Helper()
	for _, q := range []string{"ALTER SYSTEM " + how, "SELECT pg_reload_conf()"} {
		if _, err := c.home.SQL(t, "lightweb_alice").ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *commitCrash) count(t *testing.T, query string) int {
	t.Helper()
	n, err := strconv.Atoi(c.alice.Column(t, query)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
