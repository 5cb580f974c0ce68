//go:build !linux

package embedded

// physicalMemory returns the size of the machine's memory, 0 when it cannot be known.
func physicalMemory() int64 { return 0 }
