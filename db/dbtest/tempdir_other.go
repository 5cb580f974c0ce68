//go:build !linux

package dbtest

const memory = ""

// freeInMemory returns 0, because other systems have no file system in memory at a known place.
func freeInMemory() int64 { return 0 }
