package conversation_test

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// nodeClients is the number of clients in each process. Each client makes nodeCommits accepted
// commits.
const (
	nodeClients = 16
	nodeCommits = 25
)

// The first process passes its database, conversation and group to the second process in these
// variables.
const (
	nodeDatabase     = "LIGHTWEB_TEST_NODE_DATABASE"
	nodeConversation = "LIGHTWEB_TEST_NODE_CONVERSATION"
	nodeGroup        = "LIGHTWEB_TEST_NODE_GROUP"
)

// Two processes serve sixteen clients each. All clients commit at the same time. They repeat
// refused commits until each client has 25 accepted commits. Every epoch has one commit. The
// second process runs this test program again. (Rows 1 and 2 of docs/conversations.md, Cases and
// their tests.)
func TestRow1CommitsOfTwoProcessesTakeEveryEpochOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("others commit at once, too")
	}
	if os.Getenv(nodeDatabase) != "" {
		serveSecondNode(t)
		return
	}
	t.Parallel()
	store, cfg := dbtest.Named(t)
	s := &scene{TB: t, store: store, user: dbtest.User(t, store, "alice"), alice: newNodeDevice(), clock: &atomic.Int64{}}
	s.registry, s.group = s.node(store), mlstest.NewGroup(s.alice)
	v, err := s.registry.Create(t.Context(), s.user, s.group.Info(s.alice))
	if err != nil {
		t.Fatal(err)
	}
	s.at = conversation.Place{Host: s.user, ID: v.ID}

	var said bytes.Buffer
	second := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	second.Env = append(os.Environ(), "LIGHTWEB_TEST_POSTGRES="+dbtest.URL(t), nodeDatabase+"="+cfg.Name, nodeConversation+"="+v.ID.String(), nodeGroup+"="+s.group.ID)
	second.Stderr = &said
	start, err := second.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	ready, err := second.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(ready)
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the second process says %q, %v", line, err)
	}
	if err := start.Close(); err != nil {
		t.Error(err)
	}
	s.commitAtOnce()
	rest, _ := io.ReadAll(out) // an error of the read also makes Wait fail
	if err := second.Wait(); err != nil {
		t.Errorf("the second process: %v\n%s%s", err, rest, &said)
	}
	s.wantWholeLog(2 * nodeClients * nodeCommits)
}

// serveSecondNode waits until the standard input ends. It then makes as many commits as the first
// process does, over its own connections to the database.
func serveSecondNode(t *testing.T) {
	cfg := dbtest.Config(t)
	cfg.Name = os.Getenv(nodeDatabase)
	s := &scene{TB: t, store: dbtest.Connect(t, cfg), user: dbtest.Name(t, "alice"), alice: newNodeDevice(), clock: &atomic.Int64{}}
	s.registry, s.group = s.node(s.store), mlstest.NewGroupWith(os.Getenv(nodeGroup), s.alice)
	s.at = conversation.Place{Host: s.user, ID: uuid.MustParse(os.Getenv(nodeConversation))}
	_, _ = os.Stdout.WriteString("ready\n") // the first process waits for this line
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.commitAtOnce()
}

// newNodeDevice returns alice's device. Both processes make the same device.
func newNodeDevice() *mlstest.Device {
	return mlstest.NewDeviceFrom(aliceID, make([]byte, ed25519.SeedSize), time.Now())
}

// commitAtOnce runs all clients of a process until all their commits are accepted.
func (s *scene) commitAtOnce() {
	var wg sync.WaitGroup
	for range nodeClients {
		wg.Go(func() {
			g := *s.group
			for range nodeCommits {
				s.commitInTheEnd(&g)
			}
		})
	}
	wg.Wait()
}

// commitInTheEnd commits to g until a commit is accepted. After each refusal it tries again in the
// epoch that the refusal names. Finally it sets g's epoch to the epoch after the accepted commit.
func (s *scene) commitInTheEnd(g *mlstest.Group) {
	for {
		message, next := g.Commit(s.alice, mlstest.Change{})
		a, err := s.registry.Commit(s.Context(), s.at, conversation.Commit{Caller: aliceID, Key: hexHash(message), Message: message, GroupInfo: next.Info(s.alice)})
		var conflict *conversation.Conflict
		switch {
		case err == nil:
			if uint64(a.Epoch) != next.Epoch {
				s.Errorf("the commit of epoch %d began epoch %d", g.Epoch, a.Epoch)
			}
			g.Epoch = next.Epoch
			return
		case errors.As(err, &conflict):
			if len(conflict.Missing) == 0 || uint64(conflict.Missing[0].Epoch) != g.Epoch {
				s.Errorf("the refusal of epoch %d does not tell of its winner: %+v", g.Epoch, conflict)
			}
			g.Epoch = uint64(conflict.Epoch)
		case fault.KindOf(err) == fault.RateLimited || fault.KindOf(err) == fault.Busy:
		default:
			s.Errorf("commit: %v", err)
			return
		}
	}
}
