// Package redistest runs real Redis servers for tests: a single server, a pair with Sentinel, or a
// cluster of three servers. It also runs the stand-in of package embedded.
package redistest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/keyspace/embedded"
)

// Program returns the path of a Redis server program. If there is none, it skips the test. If
// LIGHTWEB_TEST_ALL is 1, it fails the test instead.
func Program(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"redis-server", "valkey-server"} {
		if p, err := exec.LookPath(name); err == nil {
			return p
		}
	}
	if os.Getenv("LIGHTWEB_TEST_ALL") == "1" {
		t.Fatal("there is no Redis server")
	}
	t.Skip("needs a Redis or Valkey server")
	return ""
}

// Server is a running Redis. It is killed when its test ends.
type Server struct {
	Addr string

	t    testing.TB
	bus  string // the port of the cluster bus
	args []string
	dir  string
	cmd  *exec.Cmd
}

// Start runs a server on loopback. The parameter args holds settings, such as "--maxmemory",
// "10mb".
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), Addr: "127.0.0.1:" + freePort(t), bus: freePort(t)}
	_, port, _ := net.SplitHostPort(s.Addr) // no error: freePort made the port
	s.args = append([]string{"--port", port, "--save", "", "--dir", s.dir, "--daemonize", "no", "--loglevel", "warning", "--cluster-port", s.bus}, args...)
	s.run(s.args...)
	return s
}

// StandIn runs the stand-in that an engine without a Redis program has, and returns its URL. It
// sets an environment variable, so its test must not be parallel.
func StandIn(t *testing.T) (url string) {
	t.Helper()
	t.Setenv("LIGHTWEB_REDIS_BIN", "none")
	r, err := embedded.Open(t.Context(), embedded.Config{Dir: filepath.Join(t.TempDir(), "data"), EventsMemory: 64 << 20, Host: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r.EventsURL()
}

// URL returns the URL of the server.
func (s *Server) URL() string { return "redis://" + s.Addr }

func (s *Server) run(args ...string) {
	s.t.Helper()
	cmd := exec.Command(Program(s.t), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, s.t.Output(), s.t.Output()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.cmd = cmd
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if the process has ended
		_ = cmd.Wait()         // reports that the process was killed
	})
	Eventually(s.t, "Redis answers", func() bool {
		answer, err := s.ask("PING")
		return err == nil && answer == "PONG"
	})
}

// Kill ends the server at once, as a power cut does. Restart starts the server again with the data
// that it had written.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // fails if the process has ended
	_ = s.cmd.Wait()         // reports that the process was killed
}

// Restart starts a server again after Kill.
func (s *Server) Restart() { s.t.Helper(); s.run(s.args...) }

// Pause suspends the server in the middle of its work. Resume continues it.
func (s *Server) Pause() { _ = s.cmd.Process.Signal(syscall.SIGSTOP) } // if the signal fails, the test fails later

// Resume continues a paused server.
func (s *Server) Resume() { _ = s.cmd.Process.Signal(syscall.SIGCONT) } // if the signal fails, the test fails later

// FailWrites makes the server refuse commands that write (MISCONF), as a server with a full disk
// does. The server cannot be restarted afterwards.
func (s *Server) FailWrites() {
	s.t.Helper()
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Fatal(err)
	}
	s.Do("CONFIG", "SET", "save", "3600 1000000")
	s.Do("BGSAVE")
	Eventually(s.t, "Redis refuses to write", func() bool {
		_, err := s.ask("SET", "x", "")
		return err != nil && strings.HasPrefix(err.Error(), "MISCONF ")
	})
}

// Do sends a command and returns the answer as text, with the elements of an array joined by
// spaces.
func (s *Server) Do(words ...string) string {
	s.t.Helper()
	answer, err := s.ask(words...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return answer
}

// As sends a command as a Redis user. It returns the answer or the text of the error.
func (s *Server) As(user, password string, words ...string) string {
	s.t.Helper()
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // the command has its answer already
	r := bufio.NewReader(conn)
	if _, err := exchange(conn, r, "AUTH", user, password); err != nil {
		return err.Error()
	}
	answer, err := exchange(conn, r, words...)
	if err != nil {
		return err.Error()
	}
	return answer
}

// IsWaitedOn reports whether a client's command waits in the server, such as for an entry of a
// stream.
func (s *Server) IsWaitedOn() bool {
	s.t.Helper()
	return !strings.Contains(s.Do("INFO", "clients"), "blocked_clients:0")
}

func (s *Server) ask(words ...string) (string, error) { return Ask("tcp", s.Addr, words...) }

// Ask sends a command to the server at an address. It returns the answer in the form that Do
// returns.
func Ask(network, address string, words ...string) (string, error) {
	conn, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // the command has its answer already
	return exchange(conn, bufio.NewReader(conn), words...)
}

func exchange(conn net.Conn, r *bufio.Reader, words ...string) (string, error) {
	var command strings.Builder
	fmt.Fprintf(&command, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&command, "$%d\r\n%s\r\n", len(w), w)
	}
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, command.String()); err != nil {
		return "", err
	}
	return read(r)
}

// read reads one answer of the protocol RESP2.
func read(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	n, _ := strconv.Atoi(rest) // n is used only where rest is a number
	switch {
	case kind == '-':
		return "", fmt.Errorf("%s", rest)
	case kind == '$' && n >= 0:
		b := make([]byte, n+2)
		_, err := io.ReadFull(r, b)
		return string(b[:n]), err
	case kind == '*':
		var all []string
		for range n {
			one, err := read(r)
			if err != nil {
				return "", err
			}
			all = append(all, one)
		}
		return strings.Join(all, " "), nil
	}
	return rest, nil
}

// Sentinel runs a primary, a replica and a Sentinel that watches them. It returns the primary,
// the replica, and the URL of the Sentinel.
func Sentinel(t testing.TB) (url string, primary, replica *Server) {
	t.Helper()
	primary = Start(t)
	host, port, _ := net.SplitHostPort(primary.Addr) // no error: the address is valid
	replica = Start(t, "--replicaof", host+" "+port)
	s := &Server{t: t, dir: t.TempDir(), Addr: "127.0.0.1:" + freePort(t)}
	_, own, _ := net.SplitHostPort(s.Addr) // no error: the address is valid
	conf := filepath.Join(s.dir, "sentinel.conf")
	settings := "port " + own + "\nsentinel monitor mymaster " + host + " " + port + " 1\nsentinel down-after-milliseconds mymaster 300\nsentinel failover-timeout mymaster 1000\n"
	if err := os.WriteFile(conf, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(conf, "--sentinel")
	Eventually(t, "Sentinel knows the replica", func() bool {
		answer, err := s.ask("SENTINEL", "replicas", "mymaster")
		return err == nil && strings.Contains(answer, "master-link-status ok")
	})
	return "redis://" + s.Addr + "?master_name=mymaster", primary, replica
}

// Cluster runs a cluster of three nodes that share the slots. It returns the cluster's URL and the
// nodes.
func Cluster(t testing.TB) (url string, nodes []*Server) {
	t.Helper()
	for range 3 {
		nodes = append(nodes, Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"))
	}
	for n, slots := range [][2]string{{"0", "5460"}, {"5461", "10922"}, {"10923", "16383"}} {
		nodes[n].Do("CLUSTER", "ADDSLOTSRANGE", slots[0], slots[1])
		nodes[n].Do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(n+1))
	}
	for _, other := range nodes[1:] {
		host, port, _ := net.SplitHostPort(other.Addr) // no error: the address is valid
		nodes[0].Do("CLUSTER", "MEET", host, port, other.bus)
	}
	for _, node := range nodes {
		Eventually(t, "the cluster is whole", func() bool {
			info := node.Do("CLUSTER", "INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		})
	}
	return "redis://" + nodes[0].Addr + "?cluster=true&addr=" + nodes[1].Addr, nodes
}

// freePort returns an unused port below the ports of outgoing connections, which begin at 32,768
// on Linux. An outgoing connection could take one of those ports before the server starts, or
// while the server is down.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(16384 + rand.IntN(16384))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = l.Close() // the listener only showed that the port is free, so the error does not matter
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Eventually waits until is() returns true. It fails the test if that takes longer than a minute.
// The limit is so long because the result depends on another process: Sentinel, for example, asks
// for replicas only every ten seconds.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
	for tick := time.NewTicker(10 * time.Millisecond); !is(); {
		select {
		case <-limit:
			t.Fatalf("never came true: %s", what)
		case <-tick.C:
		}
	}
}
