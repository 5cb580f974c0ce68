package dbtest

import "syscall"

// memory is where Linux has a file system in memory that every user can write to.
const memory = "/dev/shm"

// freeInMemory returns the free bytes of the file system in memory, 0 where there is none.
func freeInMemory() int64 {
	const tmpfs = 0x01021994
	var st syscall.Statfs_t
	if err := syscall.Statfs(memory, &st); err != nil || st.Type != tmpfs {
		return 0
	}
	return int64(st.Bavail * uint64(st.Bsize))
}
