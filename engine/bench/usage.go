package bench

import (
	"os"
	"time"
)

// CPU is the processor time that the processes of one kind used while the clock ran.
type CPU struct {
	Process string  `json:"process"` // engine, PostgreSQL or client
	Seconds float64 `json:"seconds"`
	PerOp   float64 `json:"ms_per_operation"`
}

// usage is the processor time that each kind of process has used so far, and that the whole
// machine has used.
type usage struct {
	engine, postgres, client time.Duration
	busy                     time.Duration // of all processors, by any process
}

// readUsage returns the processor time that each kind of process has used so far. ok is false
// where the operating system does not report it.
func (i *testbed) readUsage() (u usage, ok bool) {
	u.engine, ok = processTime(i.child.cmd.Process.Pid)
	if !ok {
		return usage{}, false
	}
	u.client, _ = processTime(os.Getpid())
	u.busy = machineTime()
	if i.server.Local {
		u.postgres = familyTime(i.server.Backend)
	}
	return u, true
}

func (u usage) usageSince(before usage) usage {
	return usage{u.engine - before.engine, u.postgres - before.postgres, u.client - before.client, u.busy - before.busy}
}

// cpuTable returns the usage per operation, the engine first.
func (u usage) cpuTable(operations int) []CPU {
	rows := []CPU{{Process: "engine", Seconds: u.engine.Seconds()}, {Process: "PostgreSQL", Seconds: u.postgres.Seconds()}, {Process: "client", Seconds: u.client.Seconds()}}
	for n := range rows {
		rows[n].PerOp = rows[n].Seconds * 1000 / float64(max(operations, 1))
	}
	return rows
}
