package enginetest

import (
	"fmt"
	"syscall"
)

// mount mounts an empty file system in memory on a folder. The parameter size is its size in MiB.
// All users can pass through the folder.
func mount(dir string, size int) (unmount func() error, err error) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm,mode=0711", size)); err != nil {
		return nil, err
	}
	return func() error { return syscall.Unmount(dir, syscall.MNT_DETACH) }, nil
}
