package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc: USER_HZ, 100 on every Linux that Go runs on (proc(5)).
const tick = 10 * time.Millisecond

// stat is the part of /proc/<pid>/stat that is used.
type stat struct {
	name     string
	parent   int
	own      time.Duration // used by its threads
	children time.Duration // used by its children that have ended
}

func readStat(pid int) (s stat, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, false
	}
	end := bytes.LastIndexByte(b, ')') // a name may contain any byte
	_, name, _ := bytes.Cut(b[:max(end, 0)], []byte("("))
	f := strings.Fields(string(b[end+1:])) // the fields from the third one on
	if len(f) < 15 {
		return stat{}, false
	}
	// The parameter n counts the fields as proc(5) does. The kernel writes numbers there.
	number := func(n int) int { v, _ := strconv.Atoi(f[n-3]); return v }
	return stat{name: string(name), parent: number(4), own: time.Duration(number(14)+number(15)) * tick,
		children: time.Duration(number(16)+number(17)) * tick}, true
}

// processTime returns the processor time that a process has used. ok is false if it cannot be
// read.
func processTime(pid int) (time.Duration, bool) {
	s, ok := readStat(pid)
	return s.own, ok
}

// residentMemory returns the physical memory that a process uses, in bytes.
func residentMemory(pid int) (int64, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}

// familyTime returns the processor time that a PostgreSQL server has used: the server process, its
// running children and those that have ended. The parameter backend is one of the children. It
// returns 0 if backend is not a process of PostgreSQL on this machine.
func familyTime(backend int) time.Duration {
	b, ok := readStat(backend)
	if !ok || !strings.HasPrefix(b.name, "postgres") {
		return 0
	}
	server, ok := readStat(b.parent)
	if !ok {
		return 0
	}
	sum := server.own + server.children
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path))) // it is made of digits
		if s, ok := readStat(pid); ok && s.parent == b.parent {
			sum += exactTime(pid, s.own) + s.children
		}
	}
	return sum
}

// exactTime returns the processor time of a process with one thread, to the nanosecond. With a
// thousand sessions, times that are rounded down to ticks would be wrong by much. It returns the
// parameter rough if the kernel does not report exact times.
func exactTime(pid int, rough time.Duration) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return rough
	}
	ns, _, _ := strings.Cut(string(b), " ")
	d, err := strconv.ParseInt(ns, 10, 64)
	if err != nil || d == 0 {
		return rough
	}
	return time.Duration(d)
}

// machineTime returns the sum of the times that all processors have been busy.
func machineTime() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal
	var sum time.Duration
	for n, v := range f {
		if ticks, err := strconv.ParseInt(v, 10, 64); err == nil && n <= 8 && n != 4 && n != 5 {
			sum += time.Duration(ticks) * tick
		}
	}
	return sum
}

// addProcessor adds to m the facts that Linux reports.
func addProcessor(m *Machine) {
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	m.Processor = readField("/proc/cpuinfo", "model name")
	if kb, err := strconv.ParseInt(strings.TrimSuffix(readField("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		m.Memory = kb << 10
	}
}

// readField returns the first value of that name in a file of names and values.
func readField(path, name string) string {
	b, _ := os.ReadFile(path) // an unknown value stays empty
	for line := range strings.SplitSeq(string(b), "\n") {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
