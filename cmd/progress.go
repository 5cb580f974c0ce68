package cmd

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressEvery is how often what takes long says so where no terminal shows a bar.
const progressEvery = 10 * time.Second

// progress returns what is to be told how far something has come, and what takes a bar off the
// screen at the end. A terminal shows a bar; elsewhere a line is written now and then.
func (a *app) progress(what string) (step func(done, all int), end func()) {
	if a.quiet {
		return func(int, int) {}, func() {}
	}
	if !isTerminal(a.stderr) {
		last := time.Now()
		return func(done, all int) {
			if now := time.Now(); now.Sub(last) >= progressEvery {
				last = now
				fmt.Fprintf(a.stderr, "%s: %d of %d\n", what, done, all)
			}
		}, func() {}
	}
	var bar *progressbar.ProgressBar
	options := []progressbar.Option{progressbar.OptionSetWriter(a.stderr), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100 * time.Millisecond)}
	step = func(done, all int) {
		if bar == nil {
			bar = progressbar.NewOptions(all, options...)
		}
		_ = bar.Set(done) // a screen that cannot be drawn on is no failure of the work
	}
	end = func() {
		if bar != nil {
			_ = bar.Clear() // the same
		}
	}
	return step, end
}
