// Package embedded gives an engine without a configured Redis one of its own: two private servers
// out of the program found on this machine, or else a stand-in inside the process that serves.
//
// The private servers lie in the data directory and are reached through unix sockets. Processes
// share them as they share the private PostgreSQL: the first to come starts them, the last to
// leave stops them, and servers that a killed process left running are adopted by the next
// one.
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

// closeLimit bounds Close: waiting for others, and for the servers to write what they hold.
const closeLimit = time.Minute

// Config says where Redis lies and how large it may be.
type Config struct {
	Dir          string // the data directory
	EventsMemory int64  // what the events may take, in bytes
	Host         bool   // this process serves: it runs the stand-in where there is no server program
	Log          *slog.Logger
}

// Redis is a running Redis of this engine's own, held by this process until Close. Its methods may
// be called concurrently.
type Redis struct {
	dir     string // of all that is Redis's
	as      daemon.Account
	bin     installation
	servers []*server
	standIn *standIn // in place of the servers
	url     string   // of the stand-in, in whichever process it runs
	log     *slog.Logger

	mu    sync.Mutex
	users *daemon.Lock // nil once closed
}

// Open makes sure that Redis runs, and holds it for this process. The fault is Unavailable where
// only the process that serves could run it, and none does.
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

// FindCache returns how to reach the server of what can be rebuilt, "" where no process of the
// instance runs it. It holds nothing: the server may end at any time.
func FindCache(ctx context.Context, cfg Config) (url string, err error) {
	r := &Redis{}
	if err := r.choosePlace(ctx, cfg); err != nil {
		return "", err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", r.servers[0].socket)
	if err != nil {
		return "", nil //nolint:nilerr // nobody listens
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

// choosePlace settles the folder and the account, which the locks need already.
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

// makeFolder makes a folder that only as may enter, and root.
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

// openServers starts the private servers, or finds them started.
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

// CacheURL returns how to reach the server of what can be rebuilt.
func (r *Redis) CacheURL() string { return r.urlOf(0) }

// EventsURL returns how to reach the server of the streams.
func (r *Redis) EventsURL() string { return r.urlOf(1) }

func (r *Redis) urlOf(n int) string {
	if r.url != "" {
		return r.url
	}
	return "unix://" + r.servers[n].socket
}

// Name says in a few words what runs: "Redis 7.0.15, private".
func (r *Redis) Name() string {
	if r.url != "" {
		return "Redis in process"
	}
	return r.bin.name + ", private"
}

// IsStandIn reports whether Redis runs inside this process or another one of the engine, where it
// evicts nothing.
func (r *Redis) IsStandIn() bool { return r.url != "" }

// Signal sends a signal to the servers: a benchmark lets them stand still. The fault is Unavailable
// for a stand-in, which is no process.
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

// EventsMemory returns what the events may take, in bytes.
func (r *Redis) EventsMemory() int64 {
	if r.url != "" {
		return min(r.servers[1].memory, standInMemory)
	}
	return r.servers[1].memory
}

// Supervise starts the servers again whenever one has died, until ctx ends or r is closed. A
// stand-in lives as long as its process.
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

// ensureServers starts what does not run. Several processes may notice at once: one of them starts
// it.
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

// Close lets go of Redis; the last process to do so stops it. It has its minute even if ctx has
// ended.
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

// leaveServers lets go of the users lock, and stops the servers when nobody else holds it. The
// caller holds start.lock.
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
