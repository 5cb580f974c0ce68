package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// All runs every benchmark except Dispatch, because Deliver measures the same. Benchmarks that
// have targets run at the size to which the targets apply.
func All(ctx context.Context, c Config) ([]Report, error) {
	inbox := InboxLoad{Users: 1, Activities: 10_000, Clients: 16, Key: KeyRSA, Half: true}
	stored := InboxLoad{Users: 1, Activities: 5000, Clients: 16, Key: KeyRSA, Stored: 1_000_000}
	deliver := DeliverLoad{Parts: DeliverParts, Followers: 500, Hosts: 50, Posts: 20, Backlog: 20, Stall: 10, Owed: 100_000, Back: 10_000}
	parked := deliver
	parked.Parts, parked.Parked = []string{PartDead}, true
	var reports []Report
	for _, b := range []struct {
		command string
		run     func(Config) (Report, error)
	}{
		{"lightweb bench inbox --activities 10000", func(c Config) (Report, error) { return Inbox(ctx, c, inbox) }},
		{"lightweb bench inbox --activities 5000 --stored 1000000", func(c Config) (Report, error) { return Inbox(ctx, c, stored) }},
		{"lightweb bench fanout --posts 8 --connections 1000,64", func(c Config) (Report, error) {
			return Fanout(ctx, c, FanoutLoad{Users: 1000, Posts: 8, Connections: []int{1000, 64}})
		}},
		{"lightweb bench deliver", func(c Config) (Report, error) { return Deliver(ctx, c, deliver) }},
		{"lightweb bench deliver --parts dead --parked", func(c Config) (Report, error) { return Deliver(ctx, c, parked) }},
		{"lightweb bench sockets", func(c Config) (Report, error) {
			return Sockets(ctx, c, SocketsLoad{Sockets: 1000, Users: 100, Posts: 1000})
		}},
		{"lightweb bench events", func(c Config) (Report, error) {
			return Events(ctx, c, EventsLoad{Users: 64, Events: 200, Clients: 16})
		}},
		{"lightweb bench feed", func(c Config) (Report, error) {
			return Feed(ctx, c, FeedLoad{Items: 500, Clients: 16, Duration: 5 * time.Second})
		}},
		{"lightweb bench feed --uncached", func(c Config) (Report, error) {
			return Feed(ctx, c, FeedLoad{Items: 500, Clients: 16, Duration: 5 * time.Second, Uncached: true})
		}},
		{"lightweb bench conversations", func(c Config) (Report, error) {
			return Conversations(ctx, c, ConversationsLoad{Known: 100_000, Busy: 1000, Conversations: 200, Hosts: 200, Commits: 20_000, Messages: 10_000, Clients: 64})
		}},
	} {
		c.Command = b.command
		r, err := b.run(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.command, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// Handwritten is the marker in the page of benchmarks. Everything after it is kept when the
// page is written anew.
const Handwritten = "<!-- written by hand from here on -->"

// Markdown returns the page of the reports, followed by the handwritten part of the earlier
// page.
func Markdown(reports []Report, before string) string {
	r := reports[0]
	var b strings.Builder
	fmt.Fprintf(&b, "# Benchmarks\n\nWritten by `make bench`; what is below the marker at the end is written by hand. Client, engine\n"+
		"and PostgreSQL share one machine; requests are signed before the clock starts, and every commit\nwaits for the disk.\n\n"+
		"| | |\n|---|---|\n| Date | %s |\n| Commit | %s |\n| Processor | %s, %d cores |\n| Memory | %.1f GiB |\n| System | %s %s |\n| Go | %s |\n| PostgreSQL | %s |\n",
		r.Started.Format(time.DateOnly), cmp.Or(r.Commit, r.Version), cmp.Or(r.Machine.Processor, "unknown"), r.Machine.Cores,
		float64(r.Machine.Memory)/(1<<30), r.Machine.System, r.Machine.Kernel, r.Machine.Go, r.Database.Version)
	for _, name := range settingsShown(r) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, r.Database.Settings[name])
	}
	for _, r := range reports {
		fmt.Fprintf(&b, "\n## `%s`\n", r.Command)
		for _, m := range r.Measured {
			m.writeRows(&b)
		}
	}
	_, hand, found := strings.Cut(before, Handwritten)
	if !found {
		hand = "\n\n## Where the time goes\n"
	}
	return b.String() + "\n" + Handwritten + hand
}

func settingsShown(r Report) []string {
	var names []string
	for name := range r.Database.Settings {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// writeRows adds the measurement to a page.
func (m Measurement) writeRows(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n\n| Figure | | Target |\n|---|--:|--:|\n", fold(m.Name+":"))
	for _, f := range m.Figures {
		mark := ""
		if !f.Reached() {
			mark = " (missed)"
		}
		fmt.Fprintf(b, "| %s | %s %s | %s%s |\n", f.Name, f.Show(), f.Unit, f.Goal(), mark)
	}
	for _, c := range m.CPU {
		fmt.Fprintf(b, "| CPU of %s | %s ms/operation | |\n", c.Process, showValue(c.PerOp))
	}
	fmt.Fprintf(b, "\n%s\n", fold("Limited by "+m.Limits+"."))
}

// fold breaks prose into lines that end before column 100.
func fold(s string) string { return ansi.Wordwrap(s, 99, "") }

// Show returns the value with three significant digits, or more before the decimal point. It has
// at most three digits after the decimal point.
func (f Figure) Show() string { return showValue(f.Value) }

// Goal returns the target with ≤ or ≥ before it, or nothing when there is no target.
func (f Figure) Goal() string {
	switch {
	case f.Target == 0:
		return ""
	case f.Most:
		return "≤ " + showValue(f.Target)
	}
	return "≥ " + showValue(f.Target)
}

// showValue writes v with three significant digits, or with all digits before the decimal point.
// It writes at most three digits after the decimal point.
func showValue(v float64) string {
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', min(max(2-int(math.Floor(math.Log10(math.Abs(v)))), 0), 3), 64)
}

// Answers lists how many requests got each HTTP status.
func (m Measurement) Answers() string {
	var words []string
	for name, n := range m.Counts {
		if status, answered := strings.CutPrefix(name, "answered_"); answered {
			words = append(words, fmt.Sprintf("%s: %d", status, n))
		}
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}
