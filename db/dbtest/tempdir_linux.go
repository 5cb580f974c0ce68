package dbtest

import "syscall"

// memory is the path of Linux's file system in memory. Every user can write to it.
const memory = "/dev/shm"

// freeInMemory returns the free bytes of the file system in memory, or 0 if there is none.
func freeInMemory() int64 {
	const tmpfs = 0x01021994
	var st syscall.Statfs_t
	if err := syscall.Statfs(memory, &st); err != nil || st.Type != tmpfs {
		return 0
	}
	return int64(st.Bavail * uint64(st.Bsize))
}
