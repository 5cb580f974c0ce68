package admin

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestABackupRemovesWhatKilledOnesLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	written, err := createUnfinished(filepath.Join(dir, "monday.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer written.Close()
	killed, err := createUnfinished(filepath.Join(dir, "sunday.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if info, err := killed.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a backup is written to a file of mode %v, %v, want 0600", info.Mode(), err)
	}
	// The kernel takes both from a process that is killed. Closing alone would leave the lock to a
	// child that another test starts at this moment, until the child runs its program.
	if err := errors.Join(syscall.Flock(int(killed.Fd()), syscall.LOCK_UN), killed.Close()); err != nil {
		t.Fatal(err)
	}
	others := filepath.Join(dir, "song.partial")
	if err := os.WriteFile(others, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(others, filepath.Join(dir, "link"+unfinished)); err != nil {
		t.Fatal(err)
	}
	sweepUnfinished(t.Context(), slog.New(slog.DiscardHandler), dir)
	for path, stays := range map[string]bool{written.Name(): true, killed.Name(): false, others: true} {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s: %v, want it there: %t", filepath.Base(path), err, stays)
		}
	}
}

// The policy of an instance has room for a million domains, and is in each whole backup.
func TestABackupHoldsAPolicyOfAMillionDomains(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "server.json")
	const most = 64 << 20
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, most)); err != nil {
		t.Fatal(err)
	}
	if data, err := readFile(path); err != nil || len(data) != most {
		t.Errorf("of the largest policy %d bytes are read, %v", len(data), err)
	}
	if err := os.Truncate(path, most+1); err != nil {
		t.Fatal(err)
	}
	if _, err := readFile(path); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("a larger one: %v, want it refused as too large", err)
	}
}

// A file with the backup's name appears while the backup is written. The backup fails, and the
// file stays.
func TestABackupReplacesNoFileThatAppearsMeanwhile(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(temp, path string) error{"with links": placeFile, "without links": moveFile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "monday.tar.gz")
			for _, tt := range []struct {
				content string
				want    error
			}{{"the first", nil}, {"the second", fs.ErrExist}} {
				f, err := createUnfinished(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if _, err := f.WriteString(tt.content); err != nil {
					t.Fatal(err)
				}
				if err := place(f.Name(), path); !errors.Is(err, tt.want) {
					t.Errorf("place %s: %v, want %v", tt.content, err, tt.want)
				}
				if _, err := os.Lstat(f.Name()); errors.Is(err, fs.ErrNotExist) != (tt.want == nil) {
					t.Errorf("after %s the unfinished file: %v, want it there only if it was not placed", tt.content, err)
				}
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != "the first" {
				t.Errorf("the file holds %q, %v, want the first", got, err)
			}
		})
	}
}
