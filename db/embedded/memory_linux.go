package embedded

import "syscall"

// physicalMemory returns the size of the machine's memory in bytes, 0 when it is unknown.
func physicalMemory() int64 {
	var s syscall.Sysinfo_t
	if err := syscall.Sysinfo(&s); err != nil {
		return 0
	}
	return int64(s.Totalram) * int64(s.Unit)
}
