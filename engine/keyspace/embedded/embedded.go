// Package embedded runs Redis for an engine that has no Redis configured. It runs the Redis
// program of this machine as two private servers. If the machine has no such program, it runs a
// stand-in inside the serving process.
//
// The private servers store their files in the data directory, and listen on unix sockets.
// Processes share them like the private PostgreSQL: the first process starts them, and the last
// one stops them. If a killed process has left servers running, the next process adopts them.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/daemon"
	"github.com/lightweb/lightweb/engine/fault"
)

// closeLimit limits each of the two waits of Close: for other processes, and for the servers to
// write their data and end.
const closeLimit = time.Minute

// Config says where Redis stores its files and how much memory it may use.
type Config struct {
	Dir          string // the data directory
	EventsMemory int64  // memory limit of the events, in bytes
	// Host says that this process serves the instance. Then it runs the stand-in if there is no
	// server program.
	Host bool
	Log  *slog.Logger
}

// Redis is a running private Redis. Its servers are not stopped before this process calls Close. A
// stand-in ends with the process that runs it. The methods of a Redis may be called concurrently.
type Redis struct {
	dir     string // the folder of all files of Redis
	as      daemon.Account
	bin     installation
	servers []*server
	standIn *standIn // the stand-in that this process runs in place of the servers
	url     string   // the URL of the stand-in, which runs in this or another process; empty without a stand-in
	log     *slog.Logger

	mu    sync.Mutex
	users *daemon.Lock // lock of the processes that use the servers; nil once closed
}

// Open starts Redis if it does not run, and keeps it running until Close. The fault is Unavailable
// if there is no server program and no serving process, which would run the stand-in. It is
// Conflict if another process runs the stand-in that this process would have to run.
func Open(ctx context.Context, cfg Config) (*Redis, error) {
	r := &Redis{log: cfg.Log}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if err := r.choosePlace(ctx, cfg); err != nil {
		return nil, err
	}
	if err := r.openRedis(ctx, cfg); err != nil {
		return nil, err
	}
	return r, nil
}

// FindCache returns the URL of the cache server, or "" if no process of the instance runs it. It
// does not keep the server running, so the server may end at any time.
func FindCache(ctx context.Context, cfg Config) (url string, err error) {
	r := &Redis{}
	if err := r.choosePlace(ctx, cfg); err != nil {
		return "", err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", r.servers[0].socket)
	if err != nil {
		return "", nil //nolint:nilerr // no server listens
	}
	return r.CacheURL(), conn.Close()
}

func (r *Redis) openRedis(ctx context.Context, cfg Config) (err error) {
	if !cfg.Host {
		if r.url, err = findStandIn(r.dir); err != nil || r.url != "" {
			return err
		}
	}
	if r.bin, err = findProgram(ctx); err != nil {
		return err
	}
	if r.bin.path == "" {
		return r.openStandIn(ctx, cfg)
	}
	return r.openServers(ctx)
}

// choosePlace sets the folder, the account and the servers of r. The locks need the folder and
// the account.
func (r *Redis) choosePlace(ctx context.Context, cfg Config) error {
	dir, err := daemon.MakeDir(cfg.Dir)
	if err != nil {
		return err
	}
	r.dir = filepath.Join(dir, "redis")
	if r.as, err = daemon.ChooseAccount(ctx, dir, filepath.Join(r.dir, "start.lock")); err != nil {
		return err
	}
	if err := makeFolder(r.dir, r.as); err != nil {
		return err
	}
	sockets := daemon.SocketDir(dir, "redis-events.sock")
	if err := daemon.MakeSocketDir(sockets, r.as); err != nil {
		return err
	}
	r.servers = []*server{
		{name: "cache", memory: cacheMemory, policy: "allkeys-lfu"},
		{name: "events", memory: cfg.EventsMemory, policy: "noeviction", durable: true},
	}
	for _, s := range r.servers {
		s.redis, s.dir, s.socket = r, filepath.Join(r.dir, s.name), filepath.Join(sockets, "redis-"+s.name+".sock")
	}
	return nil
}

// makeFolder makes a folder that only root and the given account may enter.
func makeFolder(dir string, as daemon.Account) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return daemon.Unusable(dir, err)
	}
	if err := as.Own(dir); err != nil {
		return daemon.Unusable(dir, err)
	}
	return nil
}

func (r *Redis) takeLock(ctx context.Context, name string, how int) (*daemon.Lock, error) {
	return daemon.TakeLock(ctx, filepath.Join(r.dir, name), how, r.as)
}

// openServers starts the private servers that do not run, and takes the lock that keeps them
// running.
func (r *Redis) openServers(ctx context.Context) error {
	if err := r.as.Reach(ctx, r.dir, r.bin.path, "Redis"); err != nil {
		return err
	}
	start, err := r.takeLock(ctx, "start.lock", syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer start.Release()
	if r.users, err = r.takeLock(ctx, "users.lock", syscall.LOCK_SH); err != nil {
		return err
	}
	if err := r.raise(ctx); err != nil {
		return errors.Join(err, r.leaveServers(ctx, r.users))
	}
	return nil
}

// raise starts every server that does not run. The caller holds start.lock.
func (r *Redis) raise(ctx context.Context) error {
	for _, s := range r.servers {
		if err := s.raise(ctx); err != nil {
			return fmt.Errorf("start the private Redis of %s: %w", s.name, err)
		}
	}
	return nil
}

// CacheURL returns the URL of the server for the cache.
func (r *Redis) CacheURL() string { return r.urlOf(0) }

// EventsURL returns the URL of the server for the streams.
func (r *Redis) EventsURL() string { return r.urlOf(1) }

func (r *Redis) urlOf(n int) string {
	if r.url != "" {
		return r.url
	}
	return "unix://" + r.servers[n].socket
}

// Name returns a short description, such as "Redis 7.0.15, private".
func (r *Redis) Name() string {
	if r.url != "" {
		return "Redis in process"
	}
	return r.bin.name + ", private"
}

// IsStandIn reports whether Redis is a stand-in inside a process of the engine. A stand-in
// evicts nothing.
func (r *Redis) IsStandIn() bool { return r.url != "" }

// Signal sends a signal to the servers; a benchmark stops them with it. The fault is Unavailable
// for a stand-in, which is not a process of its own.
func (r *Redis) Signal(sig syscall.Signal) error {
	if r.IsStandIn() {
		return fault.New(fault.Unavailable, "there is no Redis server").WithHint("install redis-server or valkey-server")
	}
	for _, s := range r.servers {
		pid, standing := s.findProcess()
		if !standing.IsAlive() {
			return fault.New(fault.Unavailable, "the private Redis does not run")
		}
		if err := syscall.Kill(pid, sig); err != nil {
			return fmt.Errorf("send a signal to the private Redis: %w", err)
		}
	}
	return nil
}

// EventsMemory returns the memory limit of the events, in bytes.
func (r *Redis) EventsMemory() int64 {
	if r.url != "" {
		return min(r.servers[1].memory, standInMemory)
	}
	return r.servers[1].memory
}

// Supervise starts the servers again whenever one has died, until ctx ends or r is closed. For a
// stand-in it returns immediately, because a stand-in lives as long as its process.
func (r *Redis) Supervise(ctx context.Context) {
	if r.url != "" {
		return
	}
	const every = time.Second
	for wait := every; daemon.Sleep(ctx, wait) == nil; {
		dead := ""
		for _, s := range r.servers {
			if !s.isAlive() {
				dead = s.name
			}
		}
		if dead == "" {
			wait = every
			continue
		}
		if wait == every {
			r.log.WarnContext(ctx, "private Redis died", "role", dead)
		}
		switch err := r.ensureServers(ctx); {
		case err == nil:
			wait = every
		case errors.Is(err, os.ErrClosed) || ctx.Err() != nil:
			return
		default:
			r.log.ErrorContext(ctx, "private Redis not restarted", "err", err)
			wait = min(2*wait, time.Minute)
		}
	}
}

// ensureServers starts the servers that do not run. Several processes may call it at the same
// time; a lock makes only one of them start a server.
func (r *Redis) ensureServers(ctx context.Context) error {
	start, err := r.takeLock(ctx, "start.lock", syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer start.Release()
	r.mu.Lock()
	closed := r.users == nil
	r.mu.Unlock()
	if closed {
		return fmt.Errorf("ensure that the private Redis runs: %w", os.ErrClosed)
	}
	return r.raise(ctx)
}

// Close ends the use of Redis by this process. The last process that ends its use stops the
// servers. Close may take up to twice closeLimit, even if ctx has ended.
func (r *Redis) Close(ctx context.Context) error {
	if r.standIn != nil {
		return r.standIn.close()
	}
	r.mu.Lock()
	users := r.users
	r.users = nil
	r.mu.Unlock()
	if users == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	start, err := r.takeLock(ctx, "start.lock", syscall.LOCK_EX)
	if err != nil {
		users.Release()
		return err
	}
	defer start.Release()
	return r.leaveServers(ctx, users)
}

// leaveServers stops the servers if no other process holds the users lock. In any case it then
// releases that lock. The caller holds start.lock.
func (r *Redis) leaveServers(ctx context.Context, users *daemon.Lock) error {
	defer users.Release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if last, err := users.Try(syscall.LOCK_EX); err != nil || !last {
		return err
	}
	var errs []error
	for _, s := range r.servers {
		errs = append(errs, s.stop(ctx))
	}
	return errors.Join(errs...)
}
