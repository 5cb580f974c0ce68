package cmd

import (
	"log/slog"
)

// logger returns the log of this run, on standard error. If the log level is not set, a command
// that does not serve logs only warnings and errors, because its result says what it did. The
// flag --verbose makes every command log everything, and --quiet at most warnings and errors.
func (a *app) logger(c *config) *slog.Logger {
	level := c.LogLevel
	switch _, asked := c.origins["log.level"]; {
	case a.verbose:
		level = slog.LevelDebug
	case a.quiet, !asked && !a.serving.Load():
		level = max(level, slog.LevelWarn)
	}
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "text" || c.LogFormat == "auto" && isTerminal(a.stderr) {
		return slog.New(slog.NewTextHandler(a.stderr, options))
	}
	return slog.New(slog.NewJSONHandler(a.stderr, options))
}
