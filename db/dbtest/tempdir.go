package dbtest

import "os"

// roomInMemory is the least room that the file system in memory must have. Two engines for each
// processor take some 100 MB.
const roomInMemory = 4 << 30

// TempDir returns the folder below which tests put their databases. That is $TMPDIR where it is
// set, else a file system in memory where there is one with enough room: each new database is 440
// files, and on a disk to make them costs the kernel five times as much. Else it is the system's
// folder for temporary files.
func TempDir() string {
	if os.Getenv("TMPDIR") == "" && freeInMemory() >= roomInMemory {
		return memory
	}
	return os.TempDir()
}
