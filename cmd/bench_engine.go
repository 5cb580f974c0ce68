package cmd

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
)

// newBenchEngine returns the command of the process that is measured. Help does not show it,
// because only the benchmarks start it.
func newBenchEngine(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "engine",
		Short:   "Be the engine that is measured",
		Long:    "engine serves the instance that 'lightweb bench' describes on its standard input, and ends when that does.",
		Example: "  lightweb bench inbox",
		Hidden:  true,
		Args:    takesArgs(),
		RunE: a.action(func(ctx context.Context, _ []string) error {
			a.serving.Store(true)
			go paceCollections(ctx, a.env)
			return bench.Serve(ctx, a.stdin, a.stdout, slog.New(slog.NewJSONHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
		}),
	}
}
