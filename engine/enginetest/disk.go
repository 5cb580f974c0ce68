package enginetest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Disk is a small file system. A test can fill it without filling another file system.
type Disk struct{ Dir string }

// NewDisk makes a disk that exists until the test ends. The parameter size is the size of the disk
// in MiB. The test is skipped where no disk can be made.
func NewDisk(t testing.TB, size int) *Disk {
	t.Helper()
	d := &Disk{Dir(t)}
	unmount, err := mount(d.Dir, size)
	if err != nil {
		Skip(t, "a small disk can only be mounted by root, on Linux: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unmount(); err != nil {
			t.Error("unmount the small disk: ", err)
		}
	})
	return d
}

func (d *Disk) ballast() string { return filepath.Join(d.Dir, "ballast") }

// Fill writes to the disk until no space is left.
func (d *Disk) Fill(t testing.TB) {
	t.Helper()
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the small disk: %v, want that there is no space left", err)
	}
}

// Free makes space again.
func (d *Disk) Free(t testing.TB) {
	t.Helper()
	if err := os.Remove(d.ballast()); err != nil {
		t.Fatal(err)
	}
}

// zeros is a reader that returns zeros without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
