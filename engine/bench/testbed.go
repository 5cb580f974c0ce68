package bench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/db/measure"
	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Database describes the database server that was used.
type Database struct {
	measure.Server
	Embedded bool `json:"embedded"`
}

// testbed is an engine to measure. It consists of a process that serves, and of the same
// instance opened by this process, which creates users and counts rows.
type testbed struct {
	Config
	setup  engineSetup
	server Database

	beside   *instance.Instance // the instance as this process has opened it; nil before the first start
	tasks    *admin.Tasks       // tasks on beside
	measured *measure.Databases // the databases of beside
	child    *child
}

// besides is the number of connections that this process may open to users' databases.
const besides = 4

// makeTestbed creates a folder for the engine, and chooses its addresses and the name for its
// databases.
func makeTestbed(ctx context.Context, c Config, s engineSetup) (*testbed, error) {
	dir, err := os.MkdirTemp("", "lightweb-bench-")
	if err != nil {
		return nil, fault.Wrap(fault.Conflict, "cannot make a temporary folder", err)
	}
	i := &testbed{Config: c, setup: s}
	i.setup.Version, i.setup.DataDir, i.setup.DatabaseURL = c.Version, dir, c.DatabaseURL
	if c.DatabaseURL != "" {
		i.setup.DatabaseName = "lightweb-bench-" + strings.ToLower(rand.Text()[:8])
	}
	// If this process runs as root, the private database runs as another user, who must reach its
	// folder.
	err = os.Chmod(dir, 0o711)
	if err == nil {
		i.setup.Listen, err = freeAddress(ctx, "")
	}
	if err == nil {
		i.setup.Admin, err = freeAddress(ctx, i.setup.Listen)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the instance: %w", err), os.RemoveAll(dir))
	}
	i.setup.PublicURL = "http://" + i.setup.Listen
	return i, nil
}

// freeAddress returns a free address on loopback other than the parameter given. Its port is below
// the range for outgoing connections, so that no outgoing connection takes the port while the
// engine restarts, and above the ports of tests that may run beside it.
func freeAddress(ctx context.Context, given string) (string, error) {
	var lc net.ListenConfig
	for range 100 {
		n, err := rand.Int(rand.Reader, big.NewInt(2_500))
		if err != nil {
			return "", err
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(30_000+int(n.Int64())))
		if address == given {
			continue
		}
		if l, err := lc.Listen(ctx, "tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", fault.New(fault.Busy, "no free port was found on loopback")
}

// startEngine starts the process of the engine. The first time, it also opens the instance in
// this process.
func (i *testbed) startEngine(ctx context.Context) (err error) {
	if i.child, err = startChild(ctx, i.Executable, i.setup); err != nil {
		return err
	}
	if i.beside != nil {
		return nil
	}
	c := i.setup.config()
	c.Database.MaxConnections = besides
	if i.beside, err = instance.Open(ctx, c, i.Log); err != nil {
		return err
	}
	i.tasks, i.measured = admin.New(i.beside), measure.New(i.beside.DB)
	i.server.Embedded = i.setup.DatabaseURL == ""
	i.server.Server, err = i.measured.DescribeServer(ctx)
	if err != nil {
		return err
	}
	most, err := strconv.Atoi(i.server.Settings["max_connections"])
	if err == nil && !i.server.Embedded && i.setup.Connections+spare > most {
		return fault.New(fault.Config, fmt.Sprintf("the database server allows %d connections, and %d were asked for", most, i.setup.Connections)).
			WithHint(fmt.Sprintf("set its max_connections to %d or more, or take fewer --connections", i.setup.Connections+spare))
	}
	return err
}

// spare is the number of connections that the database server must allow in addition to those to
// users' databases: for the instance database, for this process, and for PostgreSQL itself.
const spare = 40

// restartEngine ends the process of the engine, if it runs, and starts another process with the
// given number of connections.
func (i *testbed) restartEngine(ctx context.Context, connections int) error {
	if err := i.stopEngine(ctx); err != nil {
		return err
	}
	i.setup.Connections = connections
	return i.startEngine(ctx)
}

// stopEngine ends the process of the engine.
func (i *testbed) stopEngine(context.Context) error {
	c := i.child
	if c == nil {
		return nil
	}
	i.child = nil
	return c.stop()
}

// close deletes the instance.
func (i *testbed) close(ctx context.Context) error {
	errs := []error{i.stopEngine(ctx)}
	if i.beside != nil {
		if i.setup.DatabaseName != "" {
			store := i.beside.DB
			i.beside.DB = nil // Destroy closes it
			errs = append(errs, store.Destroy(ctx))
		}
		errs = append(errs, i.beside.Close(ctx))
	}
	return errors.Join(append(errs, os.RemoveAll(i.setup.DataDir))...)
}

// account is a local user with a token.
type account struct {
	name  vocab.Username
	id    vocab.ID
	token string
}

func (u account) inbox() string { return string(u.id) + "/inbox" }

// createUsers creates n users, several in parallel.
func (i *testbed) createUsers(ctx context.Context, n int) ([]account, error) {
	step, end := i.Progress("creating users")
	defer end()
	users := make([]account, n)
	made := newCounter(n, step)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(besides)
	for k := range users {
		g.Go(func() error {
			name, err := vocab.ParseUsername(fmt.Sprintf("u%d", k+1))
			if err != nil {
				return err
			}
			u, token, err := i.tasks.Users.Create(ctx, admin.NewUser{Name: name, Token: true})
			users[k] = account{name: name, id: u.Actor, token: token}
			made()
			return err
		})
	}
	return users, g.Wait()
}

// received counts the activities of an actor that users have stored, and those that their feeds
// show.
type received struct{ stored, shown int }

// countReceived counts the activities of an actor for each of the users, and returns the sums.
func (i *testbed) countReceived(ctx context.Context, users []account, from vocab.ID) (sum received, err error) {
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(besides)
	for _, u := range users {
		g.Go(func() error {
			stored, shown, err := i.measured.CountReceived(ctx, u.name, from)
			mu.Lock()
			defer mu.Unlock()
			sum.stored, sum.shown = sum.stored+stored, sum.shown+shown
			return err
		})
	}
	return sum, g.Wait()
}

// newCounter returns a function that is called once for each of n items when the item is done.
// Each call passes the progress to step. Several goroutines may call the function.
func newCounter(n int, step func(done, all int)) func() {
	var mu sync.Mutex
	done := 0
	return func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		step(done, n)
	}
}

// child is the process of the engine under test.
type child struct {
	cmd     *exec.Cmd
	words   io.WriteCloser
	answers *bufio.Reader
	log     *tail
}

// startChild starts the process and waits until it serves.
func startChild(ctx context.Context, executable string, s engineSetup) (*child, error) {
	// The process ends when its standard input ends.
	c := &child{cmd: exec.Command(executable, "bench", "engine"), log: &tail{}}
	c.cmd.Stderr = c.log
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	c.words, c.answers = in, bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the engine: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = in.Close() })() // this ends the process, and so the wait below
	setup, err := json.Marshal(s)
	if err == nil {
		err = c.tellChild(string(setup), wordReady)
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// tellChild writes a line to the engine's process, and fails unless the answer is want.
func (c *child) tellChild(line, want string) error {
	_, err := io.WriteString(c.words, line+"\n")
	if err != nil {
		return fmt.Errorf("tell the engine: %w", err)
	}
	got, err := c.answers.ReadString('\n')
	switch got = strings.TrimSpace(got); {
	case err != nil:
		return fault.Wrap(fault.Unavailable, "the engine under test ended", err).WithHint("lightweb serve --demo --once")
	case got != want:
		return fmt.Errorf("tell the engine: %s", got)
	}
	return nil
}

// stop lets the process end, and kills it if it does not end within a minute.
func (c *child) stop() error {
	_ = c.words.Close() // it may be closed already
	limit := time.AfterFunc(time.Minute, func() { _ = c.cmd.Process.Kill() })
	defer limit.Stop()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("end the engine: %w\n%s", err, c.log)
	}
	return nil
}

// tail stores the end of the engine's log.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const keptLog = 8 << 10

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-keptLog):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.kept))
}
