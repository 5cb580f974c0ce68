// Package embedded runs a private PostgreSQL cluster with the binaries found on this machine.
//
// The cluster is in the data directory and is reached through a unix socket. It has no TCP port
// and no password. It accepts only the user who runs the engine, the user PostgreSQL runs as,
// and root. Any number of processes share the cluster. The first process makes and starts it,
// and the last one stops it. If a killed process leaves a server running, the next process uses
// that server.
//
// Two locks in the data directory ensure this. A process holds start.lock while it makes, starts
// or stops the cluster. All processes that use the cluster share users.lock. Both use flock(2),
// so the directory must be on a local disk of a Unix.
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

// superuser is the cluster's superuser, and the only role in a new cluster.
const superuser = "lightweb"

// closeLimit limits how long Close takes. It is long because Close waits for other processes, and
// because the server writes a checkpoint before it stops.
const closeLimit = time.Minute

// Config says where the private cluster is, and how large it is.
type Config struct {
	Dir         string // the data directory, e.g. /var/lib/lightweb; made if missing. The cluster is in Dir/pg
	Connections int    // how many connections the cluster must allow; it allows at least 297
	Buffers     int64  // PostgreSQL's shared_buffers, in bytes; 0: a quarter of the memory, between 128 MiB and 2 GiB
	Log         *slog.Logger
}

// Cluster is a running private cluster, which this process uses until Close. Its methods may be
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

// Open starts the private cluster of cfg.Dir, unless the cluster runs already. The cluster runs
// at least until Close. When ctx ends, Open stops waiting for other processes and for PostgreSQL,
// and stops a server that it has begun to start.
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
	c.clearLeftovers(ctx)
	if c.users, err = c.takeLock(ctx, "users.lock", syscall.LOCK_SH); err != nil {
		return err
	}
	if err := c.raiseCluster(ctx); err != nil {
		return errors.Join(err, c.undoOpen(ctx))
	}
	return nil
}

// raiseCluster makes sure that a server answers. If there is no cluster, it makes one. The caller
// holds start.lock.
func (c *Cluster) raiseCluster(ctx context.Context) error {
	major, err := dataVersion(c.data)
	if err != nil {
		return err
	}
	if major == 0 {
		if err := c.initCluster(ctx); err != nil {
			return err
		}
	}
	if err := daemon.MakeSocketDir(c.socket, c.as); err != nil {
		return err
	}
	return c.raiseServer(ctx)
}

// choosePlace determines the directories and the account. openCluster calls it first, because the
// locks need both.
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

// needBinaries finds PostgreSQL's binaries, and checks that the account can reach them, unless it
// has done so before. To find them means to run some programs, and most commands use a server that
// runs already, so only a process that makes, starts or stops the cluster calls it. The caller
// holds start.lock.
func (c *Cluster) needBinaries(ctx context.Context) error {
	c.mu.Lock() // Supervise and Close may call it at the same time
	defer c.mu.Unlock()
	if c.bin.dir != "" {
		return nil
	}
	major, err := dataVersion(c.data)
	if err != nil {
		return err
	}
	found, err := findBin(ctx, listCandidates(ctx, c.dir), major)
	if err != nil {
		return err
	}
	if err := c.as.Reach(ctx, c.dir, found.path("postgres"), "PostgreSQL"); err != nil {
		return err
	}
	c.bin = found
	return nil
}

// ConnString returns the connection string of the cluster, as keywords and values, without a
// database name.
func (c *Cluster) ConnString() string {
	host := strings.ReplaceAll(c.socket, `'`, `\'`) // the path of a socket directory has no backslash
	return fmt.Sprintf("host='%s' port=%s user=%s sslmode=disable", host, port, superuser)
}

// Version returns the version of the running server, such as "15.19".
func (c *Cluster) Version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// Ensure starts the cluster again if its server has died, and does nothing if the server answers.
// When several processes call Ensure at the same time, one of them starts the server.
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

// Close ends the use of the cluster by this process. The last process that uses the cluster stops
// it. The end of ctx does not interrupt Close. So Close always has the time closeLimit to
// complete a shutdown.
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

// undoOpen ends the use of the cluster after a failed Open. The last process that uses the
// cluster stops the server. The caller holds start.lock.
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
