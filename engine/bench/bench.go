// Package bench measures an engine the way its users and its peers meet it: over HTTP, in a process
// of its own, on real databases, under signed requests. It makes an instance for the purpose and
// throws it away afterwards; what it loads are addresses of this machine's loopback only.
package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// Config is what all benchmarks need.
type Config struct {
	Executable  string // lightweb itself: the engine that is measured runs as `<executable> bench engine`
	DatabaseURL string // of a server; empty: a private one in the folder of the benchmark
	Version     string // of this lightweb
	Profile     string // file for a CPU profile of the engine while the clock runs; empty: none
	Commit      string // it was built from; may be unknown
	Command     string // as it is shown in the report
	Log         *slog.Logger
	// Progress returns what is to be told how far something has come, and what is called at its
	// end.
	Progress func(what string) (step func(done, all int), end func())
}

// Report is what a benchmark found.
type Report struct {
	Bench    string         `json:"bench"`
	Command  string         `json:"command"`
	Version  string         `json:"version"`
	Commit   string         `json:"commit,omitempty"`
	Started  time.Time      `json:"started"`
	Seconds  float64        `json:"seconds"` // with everything that had to be made first
	Machine  Machine        `json:"machine"`
	Database Database       `json:"database"`
	Measured []Measurement  `json:"measured"`
	Setup    map[string]any `json:"setup"`
}

// Measurement is one time the clock ran.
type Measurement struct {
	Name    string         `json:"name"` // what was done, in a few words
	Seconds float64        `json:"seconds"`
	Figures []Figure       `json:"figures"`
	Counts  map[string]int `json:"counts"` // of requests, answers and rows
	CPU     []CPU          `json:"cpu,omitempty"`
	Limits  string         `json:"limits"` // what kept the figures from being better
}

// Figure is one number that was found, beside the one that has to be reached.
type Figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Target float64 `json:"target,omitempty"` // none when 0
	Most   bool    `json:"most,omitempty"`   // the target is the most it may be, not the least
}

// Reached tells whether the target is met; true where there is none.
func (f Figure) Reached() bool {
	switch {
	case f.Target == 0:
		return true
	case f.Most:
		return f.Value <= f.Target
	}
	return f.Value >= f.Target
}

func newFigure(name string, value float64, unit string) Figure {
	return Figure{Name: name, Value: value, Unit: unit}
}

func (f Figure) atLeast(target float64) Figure { f.Target = target; return f }
func (f Figure) atMost(target float64) Figure  { f.Target, f.Most = target, true; return f }

// Figure returns the figure of that name, a zero one when there is none.
func (m Measurement) Figure(name string) Figure {
	for _, f := range m.Figures {
		if f.Name == name {
			return f
		}
	}
	return Figure{}
}

// inMilliseconds is a duration as figures show it.
func inMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// checkRange refuses a size that would be a load without bounds, or none.
func checkRange(flag string, n, least, most int) error {
	if n < least || n > most {
		return fault.New(fault.Usage, fmt.Sprintf("--%s %d is not from %d to %d", flag, n, least, most))
	}
	return nil
}

// longest bounds one benchmark, with everything that it makes first.
const longest = 30 * time.Minute

// load is a benchmark: run measures on an instance that was made for it.
type load interface {
	name() string
	check() error
	run(ctx context.Context, i *testbed, r *Report) error
}

// runLoad makes an instance, runs l on it and throws it away.
func runLoad(ctx context.Context, c Config, setup engineSetup, l load) (r Report, err error) {
	if err := l.check(); err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r = Report{Bench: l.name(), Command: c.Command, Version: c.Version, Commit: c.Commit, Started: time.Now().UTC().Truncate(time.Second), Machine: describeMachine(), Setup: loadSettings(l)}
	began := time.Now()
	i, err := makeTestbed(ctx, c, setup)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, i.close(context.WithoutCancel(ctx))) }()
	if err := i.startEngine(ctx); err != nil {
		return Report{}, err
	}
	r.Database = i.server
	if err := l.run(ctx, i, &r); err != nil {
		return Report{}, fmt.Errorf("bench %s: %w", l.name(), err)
	}
	r.Seconds = time.Since(began).Seconds()
	return r, nil
}

// loadSettings shows a load as JSON does.
func loadSettings(l load) map[string]any {
	var m map[string]any
	b, err := json.Marshal(l)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		panic("bench: a load is no JSON object: " + err.Error())
	}
	return m
}
