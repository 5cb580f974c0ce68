//go:build !linux

package embedded

// physicalMemory returns 0, because the size of the machine's memory is not read on these
// systems.
func physicalMemory() int64 { return 0 }
