package embedded

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestRedisRunsAsTwoServersOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"data", `a "quoted" place`, strings.Repeat("long", 30)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustOpen(t, testDir(t, name), nil)
			for n, url := range []string{r.CacheURL(), r.EventsURL()} {
				if url != "unix://"+r.servers[n].socket {
					t.Errorf("URL %d = %q", n, url)
				}
			}
			if !strings.HasSuffix(r.Name(), ", private") {
				t.Errorf("Name = %q", r.Name())
			}
			for _, s := range r.servers {
				mustAnswer(t, s, "PONG", "PING")
				conf, err := os.ReadFile(filepath.Join(s.dir, confName))
				must(t, err)
				want := map[string][]string{
					"cache":  {"appendonly no", "maxmemory 134217728", "maxmemory-policy allkeys-lfu"},
					"events": {"appendonly yes", "maxmemory 67108864", "maxmemory-policy noeviction", "appendfsync everysec"},
				}[s.name]
				for _, line := range append(want, "port 0") {
					if !bytes.Contains(conf, []byte("\n"+line+"\n")) {
						t.Errorf("the configuration of %s lacks %q", s.name, line)
					}
				}
			}
		})
	}
}

func TestEventsOutliveTheServerAndTheCacheDoesNot(t *testing.T) {
	t.Parallel()
	dir := testDir(t, "data")
	r := mustOpen(t, dir, nil)
	for _, s := range r.servers {
		mustAnswer(t, s, "OK", "SET", "k", "v")
	}
	mustClose(t, r)
	r = mustOpen(t, dir, nil)
	mustAnswer(t, r.servers[0], "none", "TYPE", "k")
	mustAnswer(t, r.servers[1], "string", "TYPE", "k")
}

func TestTheLastProcessStopsTheServers(t *testing.T) {
	t.Parallel()
	dir := testDir(t, "data")
	first := startHolder(t, dir)
	r := mustOpen(t, dir, nil)
	if r.EventsURL() != first.url {
		t.Errorf("two processes reach %s and %s", r.EventsURL(), first.url)
	}
	pid, _ := r.servers[1].findProcess()
	first.leaveServers()
	mustAnswer(t, r.servers[1], "PONG", "PING")
	second := startHolder(t, dir)
	mustClose(t, r)
	if now, s := r.servers[1].findProcess(); now != pid || !s.IsAlive() {
		t.Errorf("the server is process %d, %v; was %d", now, s, pid)
	}
	second.leaveServers()
	for _, s := range r.servers {
		if s.isAlive() {
			t.Errorf("the server of %s outlived all", s.name)
		}
	}
}

func TestServersOfAKilledProcessAreAdopted(t *testing.T) {
	t.Parallel()
	dir := testDir(t, "data")
	startHolder(t, dir).kill()
	r := &Redis{}
	must(t, r.choosePlace(t.Context(), Config{Dir: dir}))
	orphan, s := r.servers[1].findProcess()
	if !s.IsAlive() {
		t.Fatal("the server went with its process")
	}
	r = mustOpen(t, dir, nil)
	if pid, _ := r.servers[1].findProcess(); pid != orphan {
		t.Errorf("the server is process %d, want the orphan %d", pid, orphan)
	}
}

func TestManyProcessesAtOnceStartOneServerOfEachRole(t *testing.T) {
	t.Parallel()
	dir := testDir(t, "data")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			r, err := Open(t.Context(), Config{Dir: dir, EventsMemory: 64 << 20})
			if err == nil {
				_, err = askServer(t.Context(), r.servers[1].socket, "PING")
				err = errors.Join(err, r.Close(context.Background()))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestAServerThatDiedIsStartedAgain(t *testing.T) {
	t.Parallel()
	r := mustOpen(t, testDir(t, "data"), nil)
	ctx, stop := context.WithCancel(t.Context())
	var supervised sync.WaitGroup
	supervised.Go(func() { r.Supervise(ctx) })
	defer supervised.Wait()
	defer stop()
	pid, _ := r.servers[1].findProcess()
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	eventually(t, "another server answers", func() bool {
		now, s := r.servers[1].findProcess()
		_, err := askServer(t.Context(), r.servers[1].socket, "PING")
		return err == nil && s.IsAlive() && now != pid
	})
}

// A busy machine gives a server that has just gone into the background no time for seconds.
func TestAServerMayBeSlowToStart(t *testing.T) {
	dir := testDir(t, "data")
	real, err := findProgram(t.Context())
	must(t, err)
	slow := filepath.Join(filepath.Dir(dir), "redis-server")
	must(t, os.WriteFile(slow, []byte("#!/bin/sh\n[ \"$1\" != --version ] || exec "+real.path+" --version\n(sleep 2; exec "+real.path+" \"$@\") &\n"), 0o755))
	t.Setenv(binVariable, slow)
	mustAnswer(t, mustOpen(t, dir, nil).servers[1], "PONG", "PING")
}

func TestStreamsThatCannotBeReadAreMovedAside(t *testing.T) {
	t.Parallel()
	dir := testDir(t, "data")
	mustClose(t, mustOpen(t, dir, nil))
	file := filepath.Join(dir, "redis", "events", aofName)
	parts, err := filepath.Glob(filepath.Join(file, "*.aof"))
	must(t, err)
	for _, part := range parts {
		must(t, os.WriteFile(part, []byte("REDIS is not what this is"), 0o600))
	}
	var log bytes.Buffer
	r := mustOpen(t, dir, slog.New(slog.NewTextHandler(&log, nil)))
	mustAnswer(t, r.servers[1], "PONG", "PING")
	if _, err := os.Stat(file + ".bad"); err != nil || !strings.Contains(log.String(), "starts empty") {
		t.Errorf("the broken file: %v; log %s", err, &log)
	}
}

func TestWithoutAProgramTheServingProcessHoldsAStandIn(t *testing.T) {
	t.Setenv(binVariable, "none")
	dir := filepath.Join(t.TempDir(), "data")
	if _, err := Open(t.Context(), Config{Dir: dir}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Open while nobody serves = %v, want Unavailable", err)
	}
	h := startHolder(t, dir)
	r, err := Open(t.Context(), Config{Dir: dir})
	must(t, err)
	if r.EventsURL() != h.url || r.CacheURL() != h.url || r.Name() != "Redis in process" {
		t.Errorf("%s at %s, want that of the other process, %s", r.Name(), r.EventsURL(), h.url)
	}
	mustClose(t, r)
	h.leaveServers()
	if _, err := Open(t.Context(), Config{Dir: dir}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Open once it is gone = %v, want Unavailable", err)
	}
	startHolder(t, dir).kill()
	if _, err := Open(t.Context(), Config{Dir: dir}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Open once it was killed = %v, want Unavailable", err)
	}
}

func TestAProgramThatIsTooOldIsPassedOver(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		says string
		want string
	}{
		{"Redis server v=6.2.7 sha=00000000:0 malloc=jemalloc-5.2.1 bits=64 build=1", ""},
		{"Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1", "Redis 7.0.15"},
		{"Valkey server v=8.1.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=1", "Valkey 8.1.1"},
		{"nothing of the kind", ""},
	} {
		program := filepath.Join(t.TempDir(), "server")
		must(t, os.WriteFile(program, []byte("#!/bin/sh\necho '"+tt.says+"'\n"), 0o700))
		i, ok := examineProgram(t.Context(), program)
		if ok != (tt.want != "") || ok && i.name != tt.want {
			t.Errorf("examine of what says %q = %q, %t", tt.says, i.name, ok)
		}
	}
}
