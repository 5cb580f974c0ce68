package dbtest

import "os"

// roomInMemory is the number of free bytes that TempDir requires in the file system in memory.
// Two engines for each processor take some 100 MB.
const roomInMemory = 4 << 30

// TempDir returns the folder below which tests put their databases. That is $TMPDIR if it is set.
// If not, it is a file system in memory, if there is one with enough room. Such a file system is
// faster, because each new database has 440 files, and making them on a disk costs the kernel
// five times as much. Otherwise it is the system's folder for temporary files.
func TempDir() string {
	if os.Getenv("TMPDIR") == "" && freeInMemory() >= roomInMemory {
		return memory
	}
	return os.TempDir()
}
