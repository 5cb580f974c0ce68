package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/daemon"
	"github.com/lightweb/lightweb/engine/fault"
)

// cacheMemory is the memory limit of the private cache, in bytes. Beyond it the least used keys
// are evicted.
const cacheMemory = 128 << 20

const (
	pidName  = "redis.pid"
	confName = "redis.conf"
	aclName  = "users.acl"
	logName  = "server.log"
	logLimit = 10 << 20
	aofName  = "appendonlydir"
)

// server is one of the two private servers.
type server struct {
	redis       *Redis
	name        string // its role
	dir, socket string
	memory      int64 // maxmemory, in bytes
	policy      string
	durable     bool // its data survives a restart
}

func (s *server) findProcess() (pid int, standing daemon.Standing) {
	return daemon.StandingOf(filepath.Join(s.dir, pidName), s.dir)
}

// isAlive reports whether the server's process exists. It sends nothing to the server.
func (s *server) isAlive() bool {
	_, standing := s.findProcess()
	return standing.IsAlive()
}

// raise adopts the server if it runs, and otherwise starts it. The caller holds start.lock.
func (s *server) raise(ctx context.Context) error {
	running, err := s.settleServer(ctx)
	if err != nil {
		return err
	}
	if running { // the process that started the server may have set another limit
		_, err := askServer(ctx, s.socket, "CONFIG", "SET", "maxmemory", strconv.FormatInt(s.memory, 10))
		return err
	}
	err = s.start(ctx)
	if err == nil || !s.durable || ctx.Err() != nil {
		return err
	}
	return s.startAfresh(ctx, err)
}

// settleServer waits until it is certain whether the server runs, and reports that. The caller
// holds start.lock, so a server that is just starting or stopping was started by the caller or
// left behind by a killed process.
func (s *server) settleServer(ctx context.Context) (running bool, err error) {
	const patience = 10 * time.Second
	for mute := time.Now(); ; {
		_, err := askServer(ctx, s.socket, "PING")
		if err == nil {
			return true, nil
		}
		if ctx.Err() != nil {
			return false, fault.Wrap(fault.Busy, "Redis is not up yet", ctx.Err())
		}
		pid, standing := s.findProcess()
		absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
		switch {
		case !standing.IsAlive():
			return false, nil
		case !absent: // the server is loading its data, or is ending
			mute = time.Now()
		case time.Since(mute) > patience && standing == daemon.Ours:
			// The server's socket is gone, because the data directory was moved while the server
			// ran, or because the socket was removed.
			return false, s.killServer(ctx, pid)
		case time.Since(mute) > patience:
			return false, fault.New(fault.Conflict, fmt.Sprintf("Redis seems to be run by process %d, which does not answer", pid)).
				WithHint("if that is no Redis server, remove " + filepath.Join(s.dir, pidName))
		}
		_ = daemon.Sleep(ctx, 5*time.Millisecond) // the loop checks ctx
	}
}

// start starts the server and waits until it answers.
func (s *server) start(ctx context.Context) error {
	began := time.Now()
	if err := s.writeSettings(); err != nil {
		return fmt.Errorf("configure the server: %w", err)
	}
	if err := s.launch(context.WithoutCancel(ctx)); err != nil {
		return s.explainFailure(err)
	}
	running, err := s.settleServer(ctx)
	if err != nil {
		return err
	}
	if !running {
		return s.explainFailure(errors.New("it stopped"))
	}
	s.redis.log.InfoContext(ctx, "private Redis started", "role", s.name, "version", s.redis.bin.name, "took", time.Since(began))
	return nil
}

// launch starts the server and waits until it has written its pid file, or has ended. Without the
// file stop would not find the server, so launch goes on when nobody waits for the server any more.
func (s *server) launch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	started, err := s.redis.as.Start(ctx, s.dir, s.redis.bin.path, confName)
	if err != nil {
		return err
	}
	defer func() { _ = started.Close() }() // nothing was written to it
	for !s.isAlive() && !started.HasEnded() {
		if err := daemon.Sleep(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("wait for %s: %w", pidName, err)
		}
	}
	return nil
}

func (s *server) explainFailure(err error) error {
	return fault.Wrap(fault.Unavailable, "the private Redis server does not start", fmt.Errorf("%w\n%s", err, daemon.LastWords(filepath.Join(s.dir, logName)))).
		WithHint("see " + filepath.Join(s.dir, logName))
}

// startAfresh moves aside the data file of a server that does not start, and starts it without
// data. The streams are rebuilt from the databases.
func (s *server) startAfresh(ctx context.Context, cause error) error {
	file := filepath.Join(s.dir, aofName)
	if _, err := os.Stat(file); err != nil {
		return cause
	}
	aside := file + ".bad"
	if err := errors.Join(os.RemoveAll(aside), os.Rename(file, aside)); err != nil {
		return errors.Join(cause, err)
	}
	if err := s.start(ctx); err != nil {
		return errors.Join(err, os.Rename(aside, file)) // the file was not the cause
	}
	s.redis.log.WarnContext(ctx, "private Redis could not read its file, and starts empty", "role", s.name, "moved_to", aside, "err", cause)
	return nil
}

// writeSettings writes the files that the server reads when it starts.
func (s *server) writeSettings() error {
	if err := makeFolder(s.dir, s.redis.as); err != nil {
		return err
	}
	log := filepath.Join(s.dir, logName)
	if st, err := os.Stat(log); err == nil && st.Size() > logLimit {
		if err := os.Rename(log, log+".1"); err != nil {
			return err
		}
	}
	acl := filepath.Join(s.dir, aclName)
	if _, err := os.Stat(acl); errors.Is(err, fs.ErrNotExist) {
		if err := s.putFile(aclName, ""); err != nil {
			return err
		}
	}
	if err := os.Remove(s.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Remove(filepath.Join(s.dir, pidName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	durable := "appendonly no\n"
	if s.durable {
		durable = "appendonly yes\nappendfsync everysec\nappenddirname " + aofName + "\n"
	}
	return s.putFile(confName, "# Written by lightweb at each start.\nport 0\nsave \"\"\ndaemonize yes\nloglevel warning\n"+durable+
		"unixsocket "+quotePath(s.socket)+"\nunixsocketperm 700\ndir "+quotePath(s.dir)+
		"\npidfile "+quotePath(filepath.Join(s.dir, pidName))+"\nlogfile "+quotePath(log)+"\naclfile "+quotePath(acl)+
		"\nmaxmemory "+strconv.FormatInt(s.memory, 10)+"\nmaxmemory-policy "+s.policy+"\n")
}

// putFile writes a file of the server completely or not at all.
func (s *server) putFile(name, content string) error {
	f, err := os.CreateTemp(s.dir, name+".")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails if the file has been renamed
	_, err = f.WriteString(content)
	if err = errors.Join(err, s.redis.as.Own(f.Name()), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(s.dir, name))
}

// quotePath quotes a path for the configuration of Redis.
func quotePath(path string) string {
	var q strings.Builder
	q.WriteByte('"')
	for _, c := range []byte(path) {
		if c < ' ' || c == '"' || c == '\\' {
			fmt.Fprintf(&q, `\x%02x`, c)
			continue
		}
		q.WriteByte(c)
	}
	q.WriteByte('"')
	return q.String()
}

// stop ends the server. A durable server first writes its data. The caller holds start.lock.
func (s *server) stop(ctx context.Context) error {
	began := time.Now()
	pid, standing := s.findProcess()
	if !standing.IsAlive() {
		s.redis.log.WarnContext(ctx, "private Redis was already gone", "role", s.name)
		return nil
	}
	_, _ = askServer(ctx, s.socket, "SHUTDOWN") // it closes the connection without an answer
	for s.isAlive() && time.Since(began) < closeLimit/4 {
		if err := daemon.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	if s.isAlive() && standing == daemon.Ours {
		if err := s.killServer(ctx, pid); err != nil {
			return err
		}
	}
	s.redis.log.InfoContext(ctx, "private Redis stopped", "role", s.name, "took", time.Since(began))
	return nil
}

// killServer kills a server that does not answer, and waits until its process has ended. The
// process must be known to be the server's.
func (s *server) killServer(ctx context.Context, pid int) error {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("end the private Redis of %s: %w", s.name, err)
		}
		for range 600 {
			if !s.isAlive() {
				return nil
			}
			if err := daemon.Sleep(ctx, 5*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("end the private Redis of %s: process %d stays", s.name, pid)
}
