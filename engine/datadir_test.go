package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// The account that PostgreSQL runs as passes through the data directory, and nobody else sees what is in it. One that is
// there already stays as its owner wants it.
func TestTheDataDirectoryIsPassedThroughAndNotListed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		mode os.FileMode // of a folder that is there; 0: none is
		want os.FileMode
	}{{"new", 0, 0o711}, {"there", 0o755, 0o755}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(enginetest.Dir(t), "data")
			if tt.mode != 0 {
				if err := os.Mkdir(dir, tt.mode); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(dir, tt.mode); err != nil {
					t.Fatal(err)
				}
			}
			ran := enginetest.MakeIn(t, dir).Run(t, "user", "create", "alice")
			if ran.Code == 69 {
				enginetest.Skip(t, "no PostgreSQL to test with:\n"+ran.Stderr)
			}
			if ran.Code != 0 {
				t.Fatalf("user create ended with %d: %s", ran.Code, ran.Stderr)
			}
			info, err := os.Stat(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Mode().Perm(); got != tt.want {
				t.Errorf("the data directory has mode %04o, want %04o", got, tt.want)
			}
		})
	}
}
