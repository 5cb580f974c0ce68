package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine"
	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// screen returns an app and its output. The output counts as a terminal without colours if the
// parameter terminal is true, and as a pipe otherwise.
func screen(terminal bool) (*app, *bytes.Buffer) {
	var out bytes.Buffer
	a := newApp(nil, strings.NewReader(""), &out, &out)
	a.out = a.printer(&out)
	a.out.terminal = terminal
	return a, &out
}

func TestAFetchedActorIsShown(t *testing.T) {
	now := time.Date(2026, 2, 21, 12, 0, 0, 0, time.UTC)
	got := admin.FetchedActor{
		Handle: "@bob@remote.example", ID: "https://remote.example/users/bob", Type: "Person", Name: "Bob \x1b[31m\u202e",
		Inbox: "https://remote.example/users/bob/inbox", SharedInbox: "https://remote.example/inbox",
		Keys: []admin.FetchedKey{{ID: "https://remote.example/users/bob#main-key", Type: "RSA", Bits: 2048}, {ID: "https://remote.example/users/bob#ed25519-key", Type: "Ed25519"}},
		HTTP: &admin.FetchedOver{Status: 200, Millis: 148, Signature: "rfc9421"}, FetchedAt: now.Add(-2 * time.Hour), StaleAt: now.Add(22 * time.Hour),
		Actor: []byte(`{"id":"https://remote.example/users/bob"}`),
	}
	const onTerminal = `@bob@remote.example  Person  “Bob �[31m�”
  id            https://remote.example/users/bob
  inbox         https://remote.example/users/bob/inbox
  shared_inbox  https://remote.example/inbox
  keys          #main-key RSA 2048 · #ed25519-key Ed25519
  answer        200 in 148 ms, 0 redirects, signature rfc9421
  copy          fetched 2h ago, stale in 22h
`
	const inPipe = `handle: @bob@remote.example
type: Person
name: Bob �[31m�
id: https://remote.example/users/bob
inbox: https://remote.example/users/bob/inbox
shared_inbox: https://remote.example/inbox
keys: #main-key RSA 2048 · #ed25519-key Ed25519
answer: 200 in 148 ms, 0 redirects, signature rfc9421
copy: fetched 2h ago, stale in 22h
`
	for _, tt := range []struct {
		name          string
		terminal, raw bool
		want          string
	}{
		{"to people", true, false, onTerminal},
		{"to a pipe", false, false, inPipe},
		{"byte for byte", false, true, string(got.Actor)},
		{"byte for byte and a line's end on a terminal", true, true, string(got.Actor) + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, out := screen(tt.terminal)
			if err := a.out.showActor(got, tt.raw, now); err != nil || out.String() != tt.want {
				t.Errorf("wrote %q, %v, want %q", out, err, tt.want)
			}
		})
	}
}

func TestTheKeysOfUserCreateAreStable(t *testing.T) {
	u, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(createdUser{u, "https://example.org/users/alice", "@alice@example.org", "lightweb_alice", 12, []string{"ed25519", "rsa"}, "lw_alice_x", true})
	const want = `{"user":"alice","actor":"https://example.org/users/alice","handle":"@alice@example.org","database":"lightweb_alice","schema_version":12,"keys":["ed25519","rsa"],"token":"lw_alice_x","created":true}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestTablesSuitTheirReader(t *testing.T) {
	rows := [][]string{{"alice", "@alice@example.org"}, {"bo\tb", "x"}}
	for _, tt := range []struct {
		name     string
		terminal bool
		want     string
	}{
		{"people get columns", true, "USER   HANDLE\nalice  @alice@example.org\nbo b   x\n"},
		{"a pipe gets tabs", false, "alice\t@alice@example.org\nbo b\tx\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, out := screen(tt.terminal)
			if err := a.out.writeTable([]string{"USER", "HANDLE"}, rows, nil); err != nil || out.String() != tt.want {
				t.Errorf("wrote %q, %v, want %q", out, err, tt.want)
			}
		})
	}
}

func TestQuietWritesNothing(t *testing.T) {
	a, out := screen(true)
	a.out.quiet = true
	err := errors.Join(a.out.writeDone("done", 1), a.out.writeFacts("title", []fact{{key: "a"}}, 1), a.out.writeTable([]string{"A"}, nil, 1))
	if err != nil || out.Len() > 0 {
		t.Errorf("wrote %q, %v, want nothing", out, err)
	}
}

func TestNothingIsDestroyedUnasked(t *testing.T) {
	a, _ := screen(false)
	if err := a.prompt.confirm(t.Context(), "revoke the token", false); fault.KindOf(err) != fault.Usage || !strings.Contains(fault.Hint(err), "--yes") {
		t.Errorf("confirm = %v, want fault.Usage that names --yes", err)
	}
	if err := a.prompt.confirm(t.Context(), "revoke the token", true); err != nil {
		t.Errorf("confirm with --yes = %v, want nil", err)
	}
}

func TestReadyIsABannerOrALineOfTheLog(t *testing.T) {
	s := engine.Serving{Version: "0.1.0", PublicURL: "https://example.org", Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:9090", Mode: "embedded",
		Database: "PostgreSQL 15.18, private", Redis: "Redis 7.0.15, private", DataDir: "/var/lib/lightweb", Startup: 1204 * time.Millisecond}
	const banner = `Lightweb 0.1.0  ·  https://example.org  ·  embedded mode
  data      /var/lib/lightweb (PostgreSQL 15.18, private; Redis 7.0.15, private)
  listening http://127.0.0.1:8080   admin http://127.0.0.1:9090
  users     0 — make one: lightweb user create alice
ready in 1.2 s   Ctrl-C stops it
`
	a, out := screen(true)
	a.announceReady(s, slog.New(slog.DiscardHandler))
	if out.String() != banner {
		t.Errorf("wrote %s, want %s", out, banner)
	}
	a, out = screen(false)
	var log bytes.Buffer
	a.announceReady(s, slog.New(slog.NewJSONHandler(&log, nil)))
	var line map[string]any
	if err := json.Unmarshal(log.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 0 || line["msg"] != "ready" || line["listen"] != "127.0.0.1:8080" || line["mode"] != "embedded" || line["users"] != 0.0 || line["startup_ms"] != 1204.0 {
		t.Errorf("wrote %q and logged %v, want only the line", out, line)
	}
}

func TestServedCommandsLogMoreThanOthers(t *testing.T) {
	tests := []struct {
		name string
		set  func(*app, *config)
		want slog.Level // the lowest level that is logged
	}{
		{"a command", func(*app, *config) {}, slog.LevelWarn},
		{"a command, asked for more", func(_ *app, c *config) { c.origins["log.level"] = "flag" }, slog.LevelInfo},
		{"serve", func(a *app, _ *config) { a.serving.Store(true) }, slog.LevelInfo},
		{"serve -q", func(a *app, _ *config) { a.serving.Store(true); a.quiet = true }, slog.LevelWarn},
		{"-v", func(a *app, _ *config) { a.verbose = true }, slog.LevelDebug},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, out := screen(false)
			c := defaultConfig("/d")
			tt.set(a, c)
			log := a.logger(c)
			if !log.Enabled(t.Context(), tt.want) || log.Enabled(t.Context(), tt.want-1) {
				t.Errorf("logs from another level than %s", tt.want)
			}
			log.Error("happened")
			if !json.Valid(out.Bytes()) {
				t.Errorf("%q is not JSON, which a log in a pipe must be", out)
			}
		})
	}
}

func TestSystemdIsTold(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "s"), "@lightweb-test-" + filepath.Base(t.TempDir()) + time.Now().Format(".000000000")} {
		c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		n := newNotifier(func(string) string { return name }, 1)
		if err := n.sendState("READY=1"); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		if got, err := c.Read(b); err != nil || string(b[:got]) != "READY=1" {
			t.Errorf("systemd heard %q, %v, want READY=1", b[:got], err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := (notifier{}).sendState("READY=1"); err != nil {
		t.Errorf("without systemd: %v, want nil", err)
	}
}

func TestTheWatchdogIsFedTwiceInItsTime(t *testing.T) {
	for _, tt := range []struct {
		name, usec, pid string
		want            time.Duration
	}{
		{"ours", "30000000", "42", 15 * time.Second},
		{"anybody's", "30000000", "", 15 * time.Second},
		{"our parent's", "30000000", "41", 0},
		{"none", "", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"WATCHDOG_USEC": tt.usec, "WATCHDOG_PID": tt.pid}
			if n := newNotifier(func(k string) string { return env[k] }, 42); n.every != tt.want {
				t.Errorf("every %s, want %s", n.every, tt.want)
			}
		})
	}
}

func TestDistancesInTimeAreShort(t *testing.T) {
	now := time.Date(2026, 2, 21, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 47 * time.Hour: "47h", 48 * time.Hour: "2d", -time.Hour: "1h"} {
		if got := describeAge(now, now.Add(-d)); got != want {
			t.Errorf("ago(%s) = %q, want %q", d, got, want)
		}
	}
}

// Nobody answers at standard input. The command ends nevertheless when it is interrupted.
func TestACommandThatWaitsForInputIsInterrupted(t *testing.T) {
	in, answers := io.Pipe()
	defer answers.Close() // ends the read that is left behind
	ctx, interrupt := context.WithCancelCause(t.Context())
	stopped := errors.New("interrupted")
	err := (&app{stdin: in}).read(ctx, "-", func(r io.Reader) error {
		interrupt(stopped)
		_, err := io.ReadAll(r)
		return err
	})
	if !errors.Is(err, stopped) {
		t.Errorf("err = %v, want the cause of the interruption", err)
	}
}

// The terminal sends SIGINT while the editor runs, and the command receives it after the editor has
// ended. The edit goes on.
func TestAnInterruptOfTheEditorThatComesLateIsTheEditors(t *testing.T) {
	a := &app{}
	e := editor{env: environment{"EDITOR=true", "PATH=" + os.Getenv("PATH")}, running: &a.editing}
	if _, err := e.editFile(t.Context(), os.DevNull); err != nil {
		t.Fatal(err)
	}
	done, signals := make(chan int), make(chan os.Signal)
	ended := make(chan int)
	go func() {
		ended <- a.awaitCode(done, signals, func(cause error) { t.Errorf("the command is cancelled: %v", cause) })
	}()
	signals <- syscall.SIGINT
	done <- 0
	if code := <-ended; code != 0 {
		t.Errorf("the command ends with %d, want 0", code)
	}
}
