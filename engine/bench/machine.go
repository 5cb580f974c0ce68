package bench

import "runtime"

// Machine describes the machine on which the figures were measured.
type Machine struct {
	Processor string `json:"processor,omitempty"`
	Cores     int    `json:"cores"`
	Memory    int64  `json:"memory_bytes,omitempty"`
	System    string `json:"system"`
	Kernel    string `json:"kernel,omitempty"`
	Go        string `json:"go"`
}

func describeMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	addProcessor(&m)
	return m
}
