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

	// nobodysPID is a number that no kernel gives to a process.
	nobodysPID = "2147483647"
)

// findPostmaster returns the process that postmaster.pid names.
func (c *Cluster) findPostmaster() (pid int, s daemon.Standing) {
	return daemon.StandingOf(filepath.Join(c.data, "postmaster.pid"), c.data)
}

// isAlive reports whether the server's process is there, without troubling it.
func (c *Cluster) isAlive() bool {
	_, s := c.findPostmaster()
	return s.IsAlive()
}

// raiseServer adopts the cluster if it runs, and starts it if it does not. The caller holds
// start.lock.
func (c *Cluster) raiseServer(ctx context.Context) error {
	running, err := c.settleServer(ctx)
	if err != nil || running {
		return err
	}
	return c.startServer(ctx)
}

// settleServer waits until the cluster answers, or is certain not to run. The caller holds
// start.lock, so a server that is neither was left behind by a killed process, on its way up or
// down; recovery takes as long as it takes.
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
			// It listens somewhere else: the data directory was moved under it, or somebody tidied
			// the socket away.
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
		_ = daemon.Sleep(ctx, 20*time.Millisecond) // the next turn notices the end of ctx
	}
}

func (c *Cluster) noteAnswer(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version != "" {
		c.version = version
	}
}

// startServer starts the server and waits until it answers. The caller holds start.lock and has
// seen that it does not run.
func (c *Cluster) startServer(ctx context.Context) error {
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
		// After a crash PostgreSQL refuses to start as long as a query of the dead server has not
		// noticed.
		if fault.KindOf(err) == fault.Busy || !crashed || time.Since(began) > 5*time.Second {
			return err
		}
		_ = daemon.Sleep(ctx, 100*time.Millisecond) // the next attempt notices the end of ctx
	}
}

// tryStart is one try at starting the server.
func (c *Cluster) tryStart(ctx context.Context) (running bool, err error) {
	// Relative paths: pg_ctl hands its own to a shell, unquoted.
	_, failed := c.as.Run(ctx, c.data, c.bin.path("pg_ctl"), "start", "-s", "-w", "-t", "60", "-D", ".", "-l", logName)
	if ctx.Err() != nil {
		// pg_ctl was killed, and its server may not have got as far as its pid file, by which it
		// is found and stopped.
		for range 50 {
			if c.isAlive() {
				break
			}
			_ = daemon.Sleep(context.WithoutCancel(ctx), 20*time.Millisecond) // that one does not end
		}
	}
	// Failed or not, the server says what is true: it may be in a long recovery, or an orphan's
	// start have come first.
	if running, err = c.settleServer(ctx); err != nil || running {
		return running, err
	}
	err = c.explainFailure(fmt.Errorf("start the private cluster: %w\n%s", errors.Join(failed, errors.New("it stopped")), c.lastWords()))
	if fault.Of(err) != nil {
		return false, err
	}
	return false, fault.Wrap(fault.Unavailable, "the private PostgreSQL server does not start", err).
		WithHint("see " + filepath.Join(c.data, logName))
}

// stopServer stops the server and reports whether there was one. It signals nothing that may be a
// stranger's process. The caller holds start.lock.
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
	if _, err := c.as.Run(ctx, c.data, c.bin.path("pg_ctl"), "stop", "-s", "-w", "-t", "60", "-m", "fast", "-D", "."); err != nil {
		return false, fmt.Errorf("stop the private cluster: %w", err)
	}
	if filepath.Dir(c.socket) != c.dir {
		_ = os.Remove(c.socket) // litter in /tmp at worst
	}
	c.log.InfoContext(ctx, "private PostgreSQL stopped", "took", time.Since(began))
	return true, nil
}

// clearRemains makes harmless what a dead server left: PostgreSQL refuses to start when the number
// in one of its lock files has passed to another process, or when nobody has waited for the dead
// one. The caller holds start.lock and has seen that the server does not run.
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
	// Only the number goes: by the rest PostgreSQL notices processes of the dead server that still
	// write.
	_, rest, _ := strings.Cut(string(b), "\n")
	return c.putFile(c.data, "postmaster.pid", nobodysPID+"\n"+rest)
}

// rotateLog keeps the server's log and its predecessor bounded from start to start.
func (c *Cluster) rotateLog() error {
	path := filepath.Join(c.data, logName)
	if st, err := os.Stat(path); err != nil || st.Size() <= logLimit {
		return nil // no log yet, or one that may grow
	}
	if err := os.Rename(path, path+".1"); err != nil {
		return fmt.Errorf("rotate the server's log: %w", err)
	}
	return nil
}

// lastWords returns the end of the server's log, for the one who has to find out why it does not
// start.
func (c *Cluster) lastWords() string {
	b, err := os.ReadFile(filepath.Join(c.data, logName))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}
