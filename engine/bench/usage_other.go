//go:build !linux

package bench

import "time"

// Without /proc, the figures of processor time are left out.

func processTime(int) (time.Duration, bool) { return 0, false }
func familyTime(int) time.Duration          { return 0 }
func machineTime() time.Duration            { return 0 }
func residentMemory(int) (int64, bool)      { return 0, false }
func addProcessor(*Machine)                 {}
