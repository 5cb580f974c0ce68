// Package pipeline runs ordered steps, which share one value, the exchange. It times and logs
// each step, and adds the step's name to its error.
package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Action is a user's action: its name, from a fixed vocabulary, and its parameters.
type Action struct {
	Name   string          `json:"action"`
	Params json.RawMessage `json:"params"`
}

// Next runs the steps that follow. A step that does not call Next ends the exchange. The exchange
// then fails if the step returns an error, and succeeds if the step returns nil.
type Next func(ctx context.Context) error

// Step is one part of the work on an exchange of type X.
type Step[X any] struct {
	Name string // the name in docs/architecture.md, in errors and in the metrics
	Run  func(ctx context.Context, x X, next Next) error
}

// Do returns a step that calls the function work, and goes on to the next step if that function
// returns nil.
func Do[X any](name string, work func(context.Context, X) error) Step[X] {
	return Step[X]{name, func(ctx context.Context, x X, next Next) error {
		if err := work(ctx, x); err != nil {
			return err
		}
		return next(ctx)
	}}
}

// Pipeline is an ordered chain of steps.
type Pipeline[X any] struct {
	name  string
	log   *slog.Logger
	steps []Step[X]
	took  []prometheus.Observer // one for each step
}

// New returns the pipeline of these steps. reg may be nil.
func New[X any](name string, log *slog.Logger, reg prometheus.Registerer, steps ...Step[X]) *Pipeline[X] {
	p := &Pipeline[X]{name: name, log: log, steps: steps}
	took := stepSeconds(reg)
	for _, s := range steps {
		p.took = append(p.took, took.WithLabelValues(name, s.Name))
	}
	return p
}

// Run runs the steps on x until one ends the exchange. The text of an error names the step that
// returned it first, or the step that could not start because ctx had ended.
func (p *Pipeline[X]) Run(ctx context.Context, x X) error { return p.runFrom(ctx, x, 0) }

func (p *Pipeline[X]) runFrom(ctx context.Context, x X, i int) error {
	if i == len(p.steps) {
		return nil
	}
	step := p.steps[i]
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", step.Name, fault.Wrap(fault.Busy, "time ran out", err))
	}
	var below error // the error of the steps after this one; its text already names a step
	var after time.Duration
	start := time.Now()
	err := step.Run(ctx, x, func(ctx context.Context) error {
		began := time.Now()
		below = p.runFrom(ctx, x, i+1)
		after += time.Since(began)
		return below
	})
	took := time.Since(start) - after
	p.took[i].Observe(took.Seconds())
	if below != nil && errors.Is(err, below) {
		return err
	}
	p.log.DebugContext(ctx, "step ran", "pipeline", p.name, "step", step.Name, "took", took, "err", err)
	if err != nil {
		return fmt.Errorf("%s: %w", step.Name, err)
	}
	return nil
}

// Inbound is one activity that is being received, with the results of those steps of
// inbox.Receive that have run so far. The comments of the last three fields name the steps that
// set them.
type Inbound struct {
	Request    *http.Request    // the peer's request; its body has been read
	Body       []byte           // the bytes that the signature covers
	User       vocab.Username   // the user whose inbox received it; zero for the shared inbox
	Activity   *vocab.Activity  // set by parseBody; verifySignature may replace it
	Actor      *vocab.Actor     // the sender; set by resolveActor or verifySignature
	Recipients []vocab.Username // set by resolveAddressing
}
