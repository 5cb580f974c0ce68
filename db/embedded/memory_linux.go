package embedded

import "syscall"

// physicalMemory returns the size of the machine's memory, 0 when it cannot be known.
func physicalMemory() int64 {
	var s syscall.Sysinfo_t
	if err := syscall.Sysinfo(&s); err != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit)
}
