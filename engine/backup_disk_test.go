package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/enginetest"
)

// fullDisk is a writer with space for a limited number of bytes. Then it fails with ENOSPC.
type fullDisk struct{ space int }

func (d *fullDisk) Write(b []byte) (int, error) {
	if d.space -= len(b); d.space < 0 {
		return 0, &os.PathError{Op: "write", Path: "backup.tar.gz", Err: syscall.ENOSPC}
	}
	return len(b), nil
}

// The disk of a backup is full, or becomes full while the backup is written. The backup fails with
// an error that names the disk.
func TestABackupForWhichThereIsNoRoomBlamesItsDisk(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	i.CreateUser(t, "alice")
	besideEngine(t, i, func(tasks *admin.Tasks) {
		for _, space := range []int{0, 1000} { // the last writes need more than 1000 bytes
			_, err := tasks.Backups.Write(t.Context(), &fullDisk{space}, admin.BackupOptions{})
			var failed *os.PathError
			if !errors.As(err, &failed) || err.Error() != failed.Error() {
				t.Errorf("the backup with space for %d bytes ended with %v, want the error of its writer", space, err)
			}
		}
	})
	disk := enginetest.NewDisk(t, 1)
	disk.Fill(t)
	runAll(t, i, []command{{"backup " + filepath.Join(disk.Dir, "backup.tar.gz"), 73, "the disk of the backup"}})
	if left, err := os.ReadDir(disk.Dir); err != nil || len(left) != 1 {
		t.Errorf("the disk holds %v, %v, want the ballast alone", left, err)
	}
}
