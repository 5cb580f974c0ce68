//go:build !linux

package embedded

// physicalMemory returns 0: on these systems the size of the machine's memory is not read.
func physicalMemory() int64 { return 0 }
