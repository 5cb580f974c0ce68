// Package engine serves an instance: it starts the parts, and drains and stops them at the end.
package engine

import (
	"context"
	"log/slog"

	"github.com/lightweb/lightweb/engine/instance"
)

// Engine is an opened instance. It listens only while Serve runs.
type Engine struct {
	in *instance.Instance
}

// Open opens the instance that c describes.
func Open(ctx context.Context, c instance.Config, log *slog.Logger) (*Engine, error) {
	in, err := instance.Open(ctx, c, log)
	if err != nil {
		return nil, err
	}
	return &Engine{in}, nil
}

// Close releases everything that Open acquired.
func (e *Engine) Close(ctx context.Context) error { return e.in.Close(ctx) }
