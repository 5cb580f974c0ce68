package cmd

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

// closedPipe is a standard output that nobody reads any more.
type closedPipe struct{ writes int }

func (c *closedPipe) Write([]byte) (int, error) {
	c.writes++
	return 0, syscall.EPIPE
}

// A command whose output nobody reads any more still does its work. Its exit code says whether the
// work succeeded.
func TestAClosedPipeHidesNoFailure(t *testing.T) {
	t.Parallel()
	failed := admin.MigrationReport{Databases: 2, Failed: 1, Failures: make([]admin.MigrationFailure, 1)}
	for _, tt := range []struct {
		name string
		run  func(a *app) error
		want int
	}{
		{"some items failed", func(a *app) error { return errors.Join(a.out.showMigration(failed), migrationFault(failed, false)) }, 3},
		{"there is something to do", func(a *app) error { return errors.Join(a.out.showMigration(failed), migrationFault(failed, true)) }, 4},
		{"a file cannot be used", func(a *app) error { return a.out.showChecked([]admin.CheckedConfig{{Problem: "broken"}}) }, 78},
		{"nothing failed", func(a *app) error { return errors.Join(a.out.writeText("a"), a.out.writeText("b")) }, 0},
		{"the instance could not be closed", func(a *app) error {
			a.out.w.stops = true
			return errors.Join(ignoreClosedPipe(a.out.writeText("an event")), fault.New(fault.Busy, "the time ran out"))
		}, 75},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out closedPipe
			var errs bytes.Buffer
			a := newApp(nil, strings.NewReader(""), &out, &errs)
			c := &cobra.Command{}
			c.SetContext(context.Background())
			err := a.action(func(context.Context, []string) error { return tt.run(a) })(c, nil)
			if code := a.conclude(t.Context(), err); code != tt.want || out.writes != 1 {
				t.Errorf("exit %d after %d writes, want %d after one: %s", code, out.writes, tt.want, &errs)
			}
		})
	}
}
