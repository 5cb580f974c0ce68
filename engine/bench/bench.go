// Package bench measures an engine as its users and its peers use it: over HTTP, in a process
// of its own, on real databases, with signed requests. It creates an instance for the purpose
// and deletes it afterwards. It puts load only on loopback addresses of this machine.
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

// Config is the configuration of every benchmark.
type Config struct {
	Executable  string // lightweb itself: the measured engine runs as `<executable> bench engine`
	DatabaseURL string // the URL of a database server; empty: a private server in the folder of the benchmark is used
	Version     string // the version of this lightweb
	Profile     string // file for the engine's CPU profile of the last measurement; empty: none
	Commit      string // the commit from which this lightweb was built; empty when unknown
	Command     string // the command to show in the report
	Log         *slog.Logger
	// Progress returns two functions for a task. The caller calls the function step as the
	// task proceeds, and the function end when the task ends.
	Progress func(what string) (step func(done, all int), end func())
}

// Report is the result of a benchmark.
type Report struct {
	Bench    string         `json:"bench"`
	Command  string         `json:"command"`
	Version  string         `json:"version"`
	Commit   string         `json:"commit,omitempty"`
	Started  time.Time      `json:"started"`
	Seconds  float64        `json:"seconds"` // including the setup
	Machine  Machine        `json:"machine"`
	Database Database       `json:"database"`
	Measured []Measurement  `json:"measured"`
	Setup    map[string]any `json:"setup"`
}

// Measurement is the result of one timed run.
type Measurement struct {
	Name    string         `json:"name"` // describes the work in a few words
	Seconds float64        `json:"seconds"`
	Figures []Figure       `json:"figures"`
	Counts  map[string]int `json:"counts"` // how many requests, answers and rows there were
	CPU     []CPU          `json:"cpu,omitempty"`
	Limits  string         `json:"limits"` // the resource that limited the figures
}

// Figure is one measured number, with its target if it has one.
type Figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Target float64 `json:"target,omitempty"` // 0: no target
	Most   bool    `json:"most,omitempty"`   // the target is a maximum, not a minimum
}

// Reached reports whether the target is met. It returns true for a figure without a target.
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

// Figure returns the figure of that name, or a zero figure when there is none.
func (m Measurement) Figure(name string) Figure {
	for _, f := range m.Figures {
		if f.Name == name {
			return f
		}
	}
	return Figure{}
}

// inMilliseconds returns a duration in the unit of the figures.
func inMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// checkRange returns a fault if n is below least or above most.
func checkRange(flag string, n, least, most int) error {
	if n < least || n > most {
		return fault.New(fault.Usage, fmt.Sprintf("--%s %d is not from %d to %d", flag, n, least, most))
	}
	return nil
}

// longest is the time limit of one benchmark, including its setup.
const longest = 30 * time.Minute

// load is a benchmark. Its method run does the measurements, on an instance that was created for
// it.
type load interface {
	name() string
	check() error
	run(ctx context.Context, i *testbed, r *Report) error
}

// runLoad creates an instance, runs l on it and deletes the instance.
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

// loadSettings returns the JSON fields of a load.
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
