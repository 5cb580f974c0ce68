package dbtest

import "os"

// roomInMemory is the number of free bytes that TempDir requires in the file system in memory. Two
// engines for each processor need some 100 MB.
const roomInMemory = 4 << 30

// TempDir returns the folder below which tests put their databases. If $TMPDIR is set, that is the
// folder. If not, and if a file system in memory has enough room, the folder is in that file
// system. Otherwise it is the system's folder for temporary files. Memory is faster: each new
// database has 440 files, and making files on a disk costs the kernel five times as much.
func TempDir() string {
	if os.Getenv("TMPDIR") == "" && freeInMemory() >= roomInMemory {
		return memory
	}
	return os.TempDir()
}
