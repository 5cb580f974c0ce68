//go:build !linux

package embedded

// physical returns the size of the machine's memory, 0 when it cannot be known.
func physical() int64 { return 0 }
