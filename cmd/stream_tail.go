package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxTailed is the largest value of the flag --last, because no stream has more events.
const maxTailed = 1_000_000

func newStreamTail(a *app) *cobra.Command {
	var c admin.TailChoice
	var since, group string
	t := &tailed{app: a, types: map[string]int{}}
	cmd := &cobra.Command{
		Use:   "tail USER [flags]",
		Short: "Show a user's events as they happen",
		Long: "tail shows the last events of USER's stream, then each further event as it happens, until it is\n" +
			"interrupted. It does not disturb other readers of the stream: it uses no consumer group, and\n" +
			"acknowledges nothing. --follow=false ends it after the present events. --since and --after begin\n" +
			"elsewhere, also before the beginning of the stream: the user's database has the newest 10,000\n" +
			"events. At its end tail says on standard error how to resume.\n\n" +
			"In a pipe, and with --json, each event is a JSON document on a line of its own: id, type,\n" +
			"source, payload, timestamp. A line of type _gap says that the events before its first_id are\n" +
			"gone. A line of type _reset says that the stream was made anew. If Redis does not answer, tail\n" +
			"says so once, waits, and continues without a gap.\n\n" +
			"--group shows the progress of a consumer group, and no events: the number up to which the group\n" +
			"has acknowledged every event, the number of events that its consumers work on (pending), the\n" +
			"number of the last event, and about how many events are not acknowledged (lag).",
		Example: "  lightweb stream tail alice\n  lightweb stream tail alice --type 'follow.*' --type dm.received --since 2h\n  lightweb stream tail alice --follow=false -n 100 | jq .payload.actorUri",
		Args:    takesArgs("USER"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			if c.User, err = vocab.ParseUsername(args[0]); err != nil {
				return err
			}
			if err := a.checkTail(&c, since); err != nil {
				return err
			}
			if group != "" {
				return a.admin(ctx, func(tasks *admin.Tasks) error {
					g, err := tasks.Streams.Group(ctx, c.User, group)
					if err != nil {
						return err
					}
					return a.out.showGroup(g)
				})
			}
			t.user = c.User
			a.out.w.stops = true
			err = a.admin(ctx, func(tasks *admin.Tasks) error { return ignoreClosedPipe(tasks.Streams.Tail(ctx, c, t.sink())) })
			return t.finish(ctx, err, c.Follow)
		}),
	}
	f := cmd.Flags()
	f.IntVarP(&c.Last, "last", "n", 10, "begin with the last `N` events that are chosen: 10 unless given")
	f.BoolVar(&c.Follow, "follow", true, "wait for further events; --follow=false ends after those that are there")
	f.StringVar(&since, "since", "", "begin with the events since a `TIME`: so long ago, such as 10m or 2d, or 2026-02-21T12:00:00Z")
	f.StringVar(&c.After, "after", "", "begin behind the event with this `ID`")
	f.StringSliceVar(&c.Types, "type", nil, "only events of a `TYPE`, which may be a pattern: 'create.*', '*.received'; may be given many times")
	f.StringSliceVar(&c.Sources, "source", nil, "only events from a `SOURCE`, such as ap; likewise")
	f.IntVar(&c.Count, "count", 0, "end after `N` events")
	f.StringVar(&group, "group", "", "show how far the consumer `GROUP` is, llm or ws, and no events")
	f.BoolVar(&t.payload, "payload", false, "show the whole content of each event on a terminal, too")
	return cmd
}

// checkTail refuses flags that contradict each other or are out of bounds.
func (a *app) checkTail(c *admin.TailChoice, since string) (err error) {
	pairs := [][2]string{{"since", "after"}, {"last", "since"}, {"last", "after"}}
	for _, other := range []string{"last", "follow", "since", "after", "type", "source", "count", "payload"} {
		pairs = append(pairs, [2]string{"group", other})
	}
	for _, pair := range pairs {
		if err := a.exclusive(pair[0], pair[1]); err != nil {
			return err
		}
	}
	if c.Last < 0 || c.Last > maxTailed {
		return fault.New(fault.Usage, fmt.Sprintf("--last %d is not from 0 to %d", c.Last, maxTailed))
	}
	if c.Count < 0 || c.Count == 0 && a.command.Flags().Changed("count") {
		return fault.New(fault.Usage, fmt.Sprintf("--count %d is not a number of events", c.Count))
	}
	if since != "" {
		c.Since, err = parseSince(since, time.Now())
	}
	return err
}

// parseSince reads a time that is given in the form of RFC 3339, or as a duration before now.
func parseSince(s string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at, nil
	}
	var ago span
	if err := ago.Set(s); err != nil || ago < 0 {
		return time.Time{}, fault.New(fault.Usage, fmt.Sprintf("--since %.60q is no time", s)).WithHint("write how long ago, such as 10m or 2d, or a time such as 2026-02-21T12:00:00Z")
	}
	return now.Add(-time.Duration(ago)), nil
}

// tailed shows the events of a user and counts them.
type tailed struct {
	app     *app
	user    vocab.Username
	payload bool
	types   map[string]int // how many events of each type were shown
	last    string         // the id of the event that was read last
}

func (t *tailed) sink() admin.TailSink {
	return admin.TailSink{Item: t.show, Position: func(id string) { t.last = id }, Reached: func(reached bool) {
		words := "Redis does not answer; events are shown when it does"
		if reached {
			words = "Redis answers again"
		}
		t.say(words)
	}}
}

// say writes a message that is not an event to standard error.
func (t *tailed) say(words string) {
	if !t.app.quiet {
		fmt.Fprintln(t.app.stderr, words)
	}
}

// show writes an event, or a note between events.
func (t *tailed) show(i admin.TailItem) error {
	if i.ID != "" {
		t.types[i.Type]++
	}
	out := t.app.out
	switch {
	case out.json || !out.terminal:
		return out.writeLine(i)
	case out.quiet:
		return nil
	case i.Type == admin.TailGap:
		return out.writeText(out.style().Foreground(yellow).Render("— events before "+i.FirstID+" are gone —") + "\n")
	case i.Type == admin.TailReset:
		return out.writeText(out.style().Foreground(yellow).Render("— the stream was made anew —") + "\n")
	}
	return out.writeText(t.describeEvent(i))
}

// typeWidth is the width of the column of event types. Most types are shorter.
const typeWidth = 22

// describeEvent returns the line that people see for an event: its time, type, actor and object.
func (t *tailed) describeEvent(i admin.TailItem) string {
	var p struct{ ActorURI, ObjectURI, Trust, Error string }
	// The payload may have another form, and then the line shows less.
	_ = json.Unmarshal(i.Payload, &p)
	style, clock := t.app.out.style(), i.Timestamp
	if at, err := time.Parse(time.RFC3339, i.Timestamp); err == nil {
		clock = at.Local().Format("15:04:05.000")
	}
	actor := p.ActorURI
	if p.Trust == "self" {
		actor = "→"
	}
	line := style.Faint(true).Render(cleanLine(clock)) + "  " + style.Foreground(colourOf(i.Type)).Width(typeWidth).Render(cleanLine(i.Type))
	for _, part := range []string{actor, p.ObjectURI, p.Error} {
		if part != "" {
			line += "  " + cleanLine(part)
		}
	}
	if t.payload {
		line += "\n    " + style.Faint(true).Render(cleanLine(string(i.Payload)))
	}
	return line + "\n"
}

// colourOf returns the colour of an event type. Failures have one colour, events about sent
// activities another, and all other events a third.
func colourOf(kind string) lipgloss.Color {
	switch {
	case strings.HasSuffix(kind, ".failed"), strings.HasPrefix(kind, "stream."):
		return red
	case strings.HasSuffix(kind, ".sent"):
		return green
	}
	return cyan
}

// finish writes how many events were shown and how to resume, if follows is true and any event was
// read. It returns nil for a timeout if at least one event was shown, and err otherwise.
func (t *tailed) finish(ctx context.Context, err error, follows bool) error {
	shown := 0
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(t.types)) {
		shown += t.types[kind]
		counts = append(counts, fmt.Sprintf("%s %d", cleanLine(kind), t.types[kind]))
	}
	if t.last != "" && follows {
		list := ""
		if len(counts) > 0 {
			list = " (" + strings.Join(counts, ", ") + ")"
		}
		t.say(fmt.Sprintf("%d events%s\nresume: lightweb stream tail %s --after %s", shown, list, t.user, t.last))
	}
	if shown > 0 && errors.Is(err, context.DeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	return err
}

// showGroup shows how far a consumer group has read a user's events.
func (p *printer) showGroup(g admin.GroupState) error {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	title := fmt.Sprintf("%s has acknowledged the events of %s up to %d of %d", g.Group, g.User, g.Acknowledged, g.Last)
	return p.writeFacts(title, []fact{
		{key: "user", value: g.User.String(), titled: true},
		{key: "group", value: g.Group, titled: true},
		{key: "consumers", value: strconv.FormatInt(g.Consumers, 10)},
		{key: "acknowledged", value: number(g.Acknowledged), titled: true},
		{key: "delivered", value: number(g.Delivered)},
		{key: "pending", value: strconv.FormatInt(g.Pending, 10)},
		{key: "last", value: number(g.Last), titled: true},
		{key: "lag", value: number(g.Lag)},
	}, g)
}
