package cmd

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/bench"
)

func newBench(a *app) *cobra.Command {
	var profile string
	return newGroup("bench", "Measure an engine on this machine",
		"bench makes an instance in a temporary folder, with databases of its own, and an engine in a process of its own; it\n"+
			"plays the other servers on loopback, signs everything before the clock starts, and throws all of it away. It tells\n"+
			"what was reached, which process took the processors, and what limits. Nothing but loopback is put under load.\n\n"+
			"The database is a private one unless --database-url names a server.",
		newBenchInbox(a, &profile), newBenchFanout(a, &profile), newBenchDispatch(a, &profile), newBenchDeliver(a, &profile), newBenchFeed(a, &profile), newBenchSockets(a, &profile), newBenchEvents(a, &profile), newBenchConversations(a, &profile), newBenchAll(a), newBenchEngine(a))
}

// addProfileFlag gives c the flag --cpuprofile. Every benchmark has this flag, but the command
// that runs all benchmarks does not.
func addProfileFlag(c *cobra.Command, profile *string) *cobra.Command {
	c.Flags().Var(newFlagText(profile, "FILE"), "cpuprofile", "write a CPU profile of the engine, of what is measured last, to FILE")
	return c
}

// runBenchmark runs a benchmark and shows its report.
func (a *app) runBenchmark(ctx context.Context, profile string, run func(context.Context, bench.Config) (bench.Report, error)) error {
	c, err := a.benchConfig(profile)
	if err != nil {
		return err
	}
	r, err := run(ctx, c)
	if err != nil {
		return err
	}
	return a.out.showReports([]bench.Report{r}, r)
}

// benchConfig returns the configuration that all benchmarks share. Of the settings it uses only
// those of the log, and database.url if the flag --database-url gives it. The other settings
// describe the configured instance, not the measured one.
func (a *app) benchConfig(profile string) (bench.Config, error) {
	c, err := a.config()
	if err != nil {
		return bench.Config{}, err
	}
	executable, err := os.Executable()
	if err != nil {
		return bench.Config{}, fmt.Errorf("find this program: %w", err)
	}
	b := bench.Config{Executable: executable, Version: c.Engine.Version, Commit: build().Commit, Profile: profile, Progress: a.notices.progress, Log: a.logger(c),
		Command: a.command.CommandPath() + changedFlags(a.command)}
	if a.command.Flags().Changed("database-url") {
		b.DatabaseURL = c.Engine.Database.URL.Reveal()
	}
	return b, nil
}

// changedFlags returns those flags of the command line that set the size of a benchmark, with
// their values.
func changedFlags(c *cobra.Command) string {
	var words strings.Builder
	for _, name := range []string{"users", "activities", "clients", "rate", "stored", "key", "posts", "connections", "cold", "followers", "hosts", "shared", "personal", "parts", "backlog", "stall", "owed", "back", "parked", "items", "conversations", "commits", "messages", "duration"} {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			fmt.Fprintf(&words, " --%s=%s", name, strings.Trim(f.Value.String(), "[]"))
		}
	}
	return words.String()
}

// showReports writes a line for each figure, and for each measurement a line about what limited
// it.
func (p *printer) showReports(reports []bench.Report, doc any) error {
	if p.json || p.quiet {
		return p.writeDocument(doc)
	}
	var rows [][]string
	var limits strings.Builder
	for _, r := range reports {
		for _, m := range r.Measured {
			for n, f := range m.Figures {
				name := r.Bench + ": " + m.Name
				if p.terminal && n > 0 {
					name = ""
				}
				rows = append(rows, []string{name, f.Name, f.Show(), f.Unit, f.Goal()})
			}
			fmt.Fprintf(&limits, "%s: %s: limited by %s\n", r.Bench, m.Name, m.Limits)
			if n := m.Counts["errors"]; n > 0 {
				fmt.Fprintf(&limits, "%s: %s: %d requests were not answered as wanted: %s\n", r.Bench, m.Name, n, m.Answers())
			}
		}
	}
	if err := p.writeTable([]string{"MEASURED", "FIGURE", "VALUE", "UNIT", "TARGET"}, rows, nil); err != nil {
		return err
	}
	r := reports[0]
	return p.writeText(limits.String() + fmt.Sprintf("on %s, %d cores, PostgreSQL %s, fsync %s, synchronous_commit %s\n",
		r.Machine.Processor, r.Machine.Cores, r.Database.Version, r.Database.Settings["fsync"], r.Database.Settings["synchronous_commit"]))
}
