package admin

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
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
	if err := killed.Close(); err != nil { // as the kernel does it for a killed process
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
