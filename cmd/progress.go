package cmd

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progressEvery is the least time between two lines about the progress of a long command, when no
// terminal shows a bar.
const progressEvery = 10 * time.Second

// progress returns two functions: step is called with the progress so far, and end takes the bar
// off the screen. A terminal shows a bar; elsewhere step writes at most one line every
// progressEvery, and nothing with --json, so that every line there is JSON.
func (n *notices) progress(what string) (step func(done, all int), end func()) {
	if n.quiet || n.json && !isTerminal(n.w) {
		return func(int, int) {}, func() {}
	}
	if !isTerminal(n.w) {
		last := time.Now()
		return func(done, all int) {
			if now := time.Now(); now.Sub(last) >= progressEvery {
				last = now
				fmt.Fprintf(n.w, "%s: %d of %d\n", what, done, all)
			}
		}, func() {}
	}
	var bar *progressbar.ProgressBar
	options := []progressbar.Option{progressbar.OptionSetWriter(n.w), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionSetWidth(24), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100 * time.Millisecond)}
	step = func(done, all int) {
		if bar == nil {
			bar = progressbar.NewOptions(all, options...)
		}
		_ = bar.Set(done) // the work does not fail because the bar cannot be drawn
	}
	end = func() {
		if bar != nil {
			_ = bar.Clear() // the work does not fail for this, either
		}
	}
	return step, end
}
