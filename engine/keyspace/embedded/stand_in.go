package embedded

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/alicebob/miniredis/v2"

	"github.com/lightweb/lightweb/engine/daemon"
	"github.com/lightweb/lightweb/engine/fault"
)

const (
	standInLock = "process.lock" // locked by the process that runs the stand-in
	standInFile = "process.json" // the URL for other processes
	standInUser = "lightweb"
)

// standInMemory is the memory limit of the streams in a stand-in, in bytes. It is memory of the
// serving process.
const standInMemory = 64 << 20

// standIn is a Redis inside this process. It loses all data when the process ends, and has no
// ACL. It evicts nothing; the engine itself limits the memory of the streams in it.
type standIn struct {
	redis *miniredis.Miniredis
	lock  *daemon.Lock
	file  string
}

// published is the content of standInFile.
type published struct {
	URL string `json:"url"`
}

// openStandIn runs Redis inside this process if this process serves.
func (r *Redis) openStandIn(ctx context.Context, cfg Config) error {
	if !cfg.Host {
		return fault.New(fault.Unavailable, "Redis runs inside the engine, and no engine is serving").
			WithHint("start 'lightweb serve', or 'apt-get install redis-server'")
	}
	if url, err := findStandIn(r.dir); err != nil || url != "" {
		return errors.Join(err, fault.New(fault.Conflict, "another 'lightweb serve' runs").
			WithHint("stop it, or wait until it is done: one process at a time serves an instance"))
	}
	lock, err := r.takeLock(ctx, standInLock, syscall.LOCK_EX)
	if err != nil {
		return err
	}
	s := &standIn{redis: miniredis.NewMiniRedis(), lock: lock, file: filepath.Join(r.dir, standInFile)}
	s.redis.ClockTTL(true)
	password := rand.Text()
	s.redis.RequireUserAuth(standInUser, password)
	if err := s.redis.StartAddr("127.0.0.1:0"); err != nil {
		lock.Release()
		return fmt.Errorf("run Redis inside the process: %w", err)
	}
	r.url = fmt.Sprintf("redis://%s:%s@%s", standInUser, password, s.redis.Addr())
	b, err := json.Marshal(published{r.url})
	if err == nil {
		err = os.WriteFile(s.file, b, 0o600)
	}
	if err = errors.Join(err, r.as.Own(s.file)); err != nil {
		return errors.Join(daemon.Unusable(s.file, err), s.close())
	}
	r.standIn = s
	r.log.WarnContext(ctx, "no Redis server was found: a stand-in runs inside this process",
		"limits", "streams are kept within 64 MB and made again from the databases after a restart; sessions end with the process; no cache of feeds; no ACL",
		"hint", "'apt-get install redis-server', or set redis.url")
	return nil
}

func (s *standIn) close() error {
	defer s.lock.Release()
	s.redis.Close()
	if err := os.Remove(s.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", s.file, err)
	}
	return nil
}

// findStandIn returns the URL of the stand-in that another process runs, or "" if none does. A
// file that a killed process has left is ignored, because nobody holds the lock then.
func findStandIn(dir string) (string, error) {
	f, err := os.Open(filepath.Join(dir, standInLock))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", daemon.Unusable(dir, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return "", syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return "", fmt.Errorf("look for a Redis inside another process: %w", err)
	}
	b, err := os.ReadFile(filepath.Join(dir, standInFile))
	var p published
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil {
		return "", fault.Wrap(fault.Busy, "the engine is starting or stopping its Redis", err)
	}
	return p.URL, nil
}
