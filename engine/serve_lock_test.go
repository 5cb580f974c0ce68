package engine

import (
	"context"
	"log/slog"
	"testing"

	"github.com/lightweb/lightweb/db/dbtest"
	dbinstance "github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
)

// said tells when a line of a log says that a command holds the serve lock.
type said struct {
	slog.Handler
	held chan string
}

func (s said) Enabled(context.Context, slog.Level) bool { return true }

func (s said) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "command" {
			s.held <- a.Value.String()
		}
		return true
	})
	return nil
}

func TestACommandThatTookTheServeLockEndsNoEngine(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	command, _, err := c.Instance.Locks.Serve(t.Context(), "lightweb restore")
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan string, 1)
	e := &Engine{&instance.Instance{DB: c, Log: slog.New(said{slog.DiscardHandler, held})}}
	lost := make(chan struct{})
	close(lost) // as after a restart of the database
	serving, stop := context.WithCancelCause(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); e.keepLock(ctx, func() {}, lost, stop) }()
	if got := <-held; got != "lightweb restore" {
		t.Errorf("the log names %q", got)
	}
	command()
	for served := false; !served; {
		release, _, err := c.Instance.Locks.Serve(t.Context(), "lightweb db acquaint")
		if err == nil {
			release()
		}
		served = dbinstance.HolderOf(err) == serveCommand
		if serving.Err() != nil {
			t.Fatalf("the engine ends: %v", context.Cause(serving))
		}
	}
	cancel()
	<-done
}

func TestAnotherEngineThatTookTheServeLockEndsTheEngine(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	other, _, err := c.Instance.Locks.Serve(t.Context(), serveCommand)
	if err != nil {
		t.Fatal(err)
	}
	defer other()
	e := &Engine{&instance.Instance{DB: c, Log: slog.New(slog.DiscardHandler)}}
	lost := make(chan struct{})
	close(lost)
	serving, stop := context.WithCancelCause(t.Context())
	e.keepLock(t.Context(), func() {}, lost, stop)
	if err := context.Cause(serving); fault.KindOf(err) != fault.Conflict {
		t.Errorf("the engine ends with %v, want Conflict", err)
	}
}
