// Package embedded runs a private PostgreSQL cluster out of the binaries found on this machine.
//
// The cluster lies in the data directory and is reached through a unix socket: it has no TCP port
// and no password, and lets in only the user who runs the engine, the user PostgreSQL runs as, and
// root. Any number of processes share it. The first to come makes and starts it, the last to leave
// stops it, and what a killed process leaves running is adopted by the next one.
//
// Two locks in the data directory keep this true: start.lock is held while a process makes, starts
// or stops the cluster, users.lock is shared by all who use it. Both are flock(2): the directory
// must be on a local disk of a Unix.
package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/daemon"
)

// superuser is the cluster's own superuser, the only role there is until somebody makes another.
const superuser = "lightweb"

// closeLimit bounds Close: waiting for others, and the shutdown checkpoint.
const closeLimit = time.Minute

// Config says where the private cluster lies.
type Config struct {
	Dir         string // the data directory, e.g. /var/lib/lightweb; made if missing. The cluster lies in Dir/pg
	Connections int    // for which there must be room; there is for 297 in any case
	Buffers     int64  // PostgreSQL's shared_buffers, in bytes; 0: a quarter of the memory, between 128 MiB and 2 GiB
	Log         *slog.Logger
}

// Cluster is a running private cluster, held by this process until Close. Its methods may be
// called concurrently.
type Cluster struct {
	dir, data, socket string
	bin               installation
	as                daemon.Account
	connections       int
	buffers           int64
	log               *slog.Logger

	mu      sync.Mutex
	version string
	users   *daemon.Lock // nil once closed
}

// Open makes sure that the private cluster of cfg.Dir runs, and holds it for this process. When
// ctx ends, so does any waiting for others and for PostgreSQL, and what was half started is
// stopped again.
func Open(ctx context.Context, cfg Config) (*Cluster, error) {
	c := &Cluster{connections: cfg.Connections, buffers: cmp.Or(cfg.Buffers, sharedBuffers()), log: cfg.Log}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if err := c.openCluster(ctx, cfg.Dir); err != nil {
		return nil, c.explainFailure(err)
	}
	return c, nil
}

func (c *Cluster) openCluster(ctx context.Context, dir string) error {
	if err := c.choosePlace(ctx, dir); err != nil {
		return err
	}
	start, err := c.takeLock(ctx, "start.lock", syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer start.Release()
	made, err := c.findBinaries(ctx)
	if err != nil {
		return err
	}
	if c.users, err = c.takeLock(ctx, "users.lock", syscall.LOCK_SH); err != nil {
		return err
	}
	if !made {
		err = c.initCluster(ctx)
	}
	if err == nil {
		err = c.raiseServer(ctx)
	}
	if err != nil {
		return errors.Join(err, c.undoOpen(ctx))
	}
	return nil
}

// choosePlace settles the directory and the account, which the locks need already.
func (c *Cluster) choosePlace(ctx context.Context, dir string) (err error) {
	if c.dir, err = daemon.MakeDir(dir); err != nil {
		return err
	}
	c.data = filepath.Join(c.dir, "pg")
	c.socket = daemon.SocketDir(c.dir, socketName)
	c.as, err = daemon.ChooseAccount(ctx, c.dir, filepath.Join(c.data, "PG_VERSION"))
	return err
}

// takeLock takes the named lock of the data directory.
func (c *Cluster) takeLock(ctx context.Context, name string, how int) (*daemon.Lock, error) {
	return daemon.TakeLock(ctx, filepath.Join(c.dir, name), how, c.as)
}

// findBinaries finds the binaries and the way to them, and reports whether the cluster has been
// made already.
func (c *Cluster) findBinaries(ctx context.Context) (made bool, err error) {
	c.clearLeftovers(ctx)
	major, err := dataVersion(c.data)
	if err != nil {
		return false, err
	}
	if c.bin, err = findBin(ctx, listCandidates(ctx, c.dir), major); err != nil {
		return false, err
	}
	c.version = c.bin.version
	if err := c.as.Reach(ctx, c.dir, c.bin.path("postgres"), "PostgreSQL"); err != nil {
		return false, err
	}
	return major != 0, daemon.MakeSocketDir(c.socket, c.as)
}

// ConnString returns how to reach the cluster, as keywords and values without a database name.
func (c *Cluster) ConnString() string {
	host := strings.ReplaceAll(c.socket, `'`, `\'`) // a backslash is in no socket directory
	return fmt.Sprintf("host='%s' port=%s user=%s sslmode=disable", host, port, superuser)
}

// Version returns the version of the running server, such as "15.19".
func (c *Cluster) Version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// Ensure starts the cluster again when its server has died, and does nothing when it answers.
// Several processes may notice at once: one of them starts it.
func (c *Cluster) Ensure(ctx context.Context) error {
	if _, err := askServer(ctx, c.socket); err == nil {
		return nil
	}
	start, err := c.takeLock(ctx, "start.lock", syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer start.Release()
	c.mu.Lock()
	closed := c.users == nil
	c.mu.Unlock()
	if closed {
		return fmt.Errorf("ensure that the private cluster runs: %w", os.ErrClosed)
	}
	return c.explainFailure(c.raiseServer(ctx))
}

// Supervise starts the cluster again whenever its server has died, until ctx ends or c is closed.
func (c *Cluster) Supervise(ctx context.Context) {
	const every = time.Second
	for wait := every; daemon.Sleep(ctx, wait) == nil; {
		if c.isAlive() {
			wait = every
			continue
		}
		if wait == every {
			c.log.WarnContext(ctx, "private PostgreSQL died")
		}
		err := c.Ensure(ctx)
		switch {
		case err == nil:
			wait = every
		case errors.Is(err, os.ErrClosed) || ctx.Err() != nil:
			return
		default:
			c.log.ErrorContext(ctx, "private PostgreSQL not restarted", "err", err)
			wait = min(2*wait, time.Minute)
		}
	}
}

// Close lets go of the cluster; the last process to do so stops it. A shutdown is nothing to give
// up half-way: it has its minute even if ctx has ended.
func (c *Cluster) Close(ctx context.Context) error {
	c.mu.Lock()
	users := c.users
	c.users = nil
	c.mu.Unlock()
	if users == nil {
		return nil
	}
	defer users.Release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	start, err := c.takeLock(ctx, "start.lock", syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer start.Release()
	if last, err := users.Try(syscall.LOCK_EX); err != nil || !last {
		return err
	}
	if stopped, err := c.stopServer(ctx); err != nil || stopped {
		return err
	}
	c.log.WarnContext(ctx, "private PostgreSQL was already gone")
	return nil
}

// undoOpen undoes an Open that did not come to its end. The caller holds start.lock.
func (c *Cluster) undoOpen(ctx context.Context) error {
	defer c.users.Release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if last, err := c.users.Try(syscall.LOCK_EX); err != nil || !last {
		return err
	}
	_, err := c.stopServer(ctx)
	return err
}
