package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/daemon"
	"github.com/lightweb/lightweb/engine/fault"
)

const (
	logName  = "server.log"
	logLimit = 10 << 20

	// nobodysPID is a process number that no kernel assigns.
	nobodysPID = "2147483647"
)

// findPostmaster returns the process that postmaster.pid names. The result s says whether that
// process is the server.
func (c *Cluster) findPostmaster() (pid int, s daemon.Standing) {
	return daemon.StandingOf(filepath.Join(c.data, "postmaster.pid"), c.data)
}

// isAlive reports whether the server's process exists. It does not connect to the server.
func (c *Cluster) isAlive() bool {
	_, s := c.findPostmaster()
	return s.IsAlive()
}

// raiseServer makes sure that a server answers. If no server runs, it starts one. The caller
// holds start.lock.
func (c *Cluster) raiseServer(ctx context.Context) error {
	running, err := c.settleServer(ctx)
	if err != nil || running {
		return err
	}
	return c.startServer(ctx)
}

// settleServer waits until the server answers, or until it is certain that none runs. The result
// "running" is true when the server answers. The caller holds start.lock. So if a server exists
// and does not answer, a process that was killed had begun to start or stop the server, or the
// server has lost its socket. There is no time limit for a server that is in recovery. After ten
// seconds without a socket, settleServer stops a process that is certainly the server. If it is
// uncertain whether the process in postmaster.pid is the server, the fault is Conflict.
func (c *Cluster) settleServer(ctx context.Context) (running bool, err error) {
	const patience = 10 * time.Second
	mute, told := time.Now(), false
	for began := mute; ; {
		version, err := askServer(ctx, c.socket)
		if err == nil {
			c.noteAnswer(version)
			return true, nil
		}
		if ctx.Err() != nil {
			return false, fault.Wrap(fault.Busy, "the database is not up yet", ctx.Err())
		}
		pid, s := c.findPostmaster()
		absent := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
		switch {
		case !absent && !isPassing(err):
			return false, fmt.Errorf("ask the private cluster: %w", err)
		case s == daemon.Gone || s == daemon.Other:
			return false, nil
		case !absent:
			mute = time.Now()
		case time.Since(mute) > patience && s == daemon.Ours:
			// The server runs without this socket, because the data directory was moved while it
			// ran, or the socket's file was removed.
			_, err := c.stopServer(ctx)
			return false, err
		case time.Since(mute) > patience:
			return false, fault.New(fault.Conflict, fmt.Sprintf("the database seems to be run by process %d, which does not answer", pid)).
				WithHint("if that is no PostgreSQL server, remove " + filepath.Join(c.data, "postmaster.pid"))
		}
		if !told && time.Since(began) > patience/2 {
			told = true
			c.log.WarnContext(ctx, "private PostgreSQL kept us waiting", "err", err)
		}
		_ = daemon.Sleep(ctx, 20*time.Millisecond) // the next iteration notices the end of ctx
	}
}

func (c *Cluster) noteAnswer(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version != "" {
		c.version = version
	}
}

// startServer starts the server and waits until it answers. The caller holds start.lock, and has
// checked that the server does not run.
func (c *Cluster) startServer(ctx context.Context) error {
	if err := c.needBinaries(ctx); err != nil {
		return err
	}
	began := time.Now()
	_, err := os.Stat(filepath.Join(c.data, "postmaster.pid"))
	crashed := err == nil
	if err := errors.Join(c.clearRemains(), c.writeSettings(ctx), c.rotateLog()); err != nil {
		return fmt.Errorf("prepare the private cluster: %w", err)
	}
	for {
		running, err := c.tryStart(ctx)
		if running {
			c.log.InfoContext(ctx, "private PostgreSQL started", "version", c.Version(), "took", time.Since(began))
			if c.as.Shared {
				c.log.WarnContext(ctx, "private PostgreSQL runs as nobody: other programs that do can read the data", "hint", daemon.WayFromNobody(c.data, c.socket))
			}
			return nil
		}
		// After a crash PostgreSQL refuses to start until all processes of the dead server have
		// ended, so the start is retried for five seconds.
		if fault.KindOf(err) == fault.Busy || !crashed || time.Since(began) > 5*time.Second {
			return err
		}
		_ = daemon.Sleep(ctx, 100*time.Millisecond) // the next attempt notices the end of ctx
	}
}

// tryStart tries once to start the server. The result "running" is true when the server answers.
func (c *Cluster) tryStart(ctx context.Context) (running bool, err error) {
	// The paths are relative, because pg_ctl passes its paths to a shell without quotes.
	_, failed := c.as.Run(ctx, c.data, c.bin.path("pg_ctl"), "start", "-s", "-w", "-t", "60", "-D", ".", "-l", logName)
	if ctx.Err() != nil {
		// pg_ctl was killed, and the server that it started may not have written its pid file
		// yet. Without this file the server cannot be found and stopped, so tryStart waits for
		// the file for up to a second.
		for range 50 {
			if c.isAlive() {
				break
			}
			// Sleep never fails here, because its context does not end.
			_ = daemon.Sleep(context.WithoutCancel(ctx), 20*time.Millisecond)
		}
	}
	// Whether pg_ctl failed or not, only the server's answer counts, because the server may be in
	// a long recovery, or a killed process may have started it first.
	if running, err = c.settleServer(ctx); err != nil || running {
		return running, err
	}
	err = c.explainFailure(fmt.Errorf("start the private cluster: %w\n%s", errors.Join(failed, errors.New("it stopped")), daemon.LastWords(filepath.Join(c.data, logName))))
	if fault.Of(err) != nil {
		return false, err
	}
	return false, fault.Wrap(fault.Unavailable, "the private PostgreSQL server does not start", err).
		WithHint("see " + filepath.Join(c.data, logName))
}

// stopServer stops the server. The result "stopped" is true when it has stopped a server. It does
// not signal a process that may not be the server. The caller holds start.lock.
func (c *Cluster) stopServer(ctx context.Context) (stopped bool, err error) {
	began := time.Now()
	_, s := c.findPostmaster()
	if s == daemon.Unsure {
		if _, err := askServer(ctx, c.socket); err == nil {
			s = daemon.Ours
		}
	}
	if s != daemon.Ours {
		return false, nil
	}
	if err := c.needBinaries(ctx); err != nil {
		return false, err
	}
	if _, err := c.as.Run(ctx, c.data, c.bin.path("pg_ctl"), "stop", "-s", "-w", "-t", "60", "-m", "fast", "-D", "."); err != nil {
		return false, fmt.Errorf("stop the private cluster: %w", err)
	}
	if filepath.Dir(c.socket) != c.dir {
		_ = os.Remove(c.socket) // if that fails, only an empty folder stays in /tmp
	}
	c.log.InfoContext(ctx, "private PostgreSQL stopped", "took", time.Since(began))
	return true, nil
}

// clearRemains removes or neutralizes the lock files of a dead server. PostgreSQL would refuse
// to start if the process number in such a file now belongs to another process, or to a zombie
// of the dead server. The caller holds start.lock, and has checked that the server does not run.
func (c *Cluster) clearRemains() error {
	for _, path := range []string{socketPath(c.socket), socketPath(c.socket) + ".lock"} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear a dead server's socket: %w", err)
		}
	}
	pid, s := c.findPostmaster()
	if s != daemon.Other {
		return nil
	}
	path := filepath.Join(c.data, "postmaster.pid")
	if pid == 0 {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("clear a dead server's pid file: %w", err)
		}
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("clear a dead server's pid file: %w", err)
	}
	// Only the process number is replaced. From the rest of the file PostgreSQL finds out
	// whether processes of the dead server still write.
	_, rest, _ := strings.Cut(string(b), "\n")
	return c.putFile(c.data, "postmaster.pid", nobodysPID+"\n"+rest)
}

// rotateLog renames the server's log if the log exceeds logLimit. The renamed log replaces the
// one that was renamed before.
func (c *Cluster) rotateLog() error {
	path := filepath.Join(c.data, logName)
	if st, err := os.Stat(path); err != nil || st.Size() <= logLimit {
		return nil // there is no log yet, or the log may still grow
	}
	if err := os.Rename(path, path+".1"); err != nil {
		return fmt.Errorf("rotate the server's log: %w", err)
	}
	return nil
}
