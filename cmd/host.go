package cmd

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newHost(a *app) *cobra.Command {
	return newGroup("host", "Deliveries to other servers, by host", "host shows the state of deliveries by host, and pauses or resumes them. Five failures within ten\n"+
		"minutes open the breaker of a host: it gets no delivery for a minute, then one delivery tests it,\n"+
		"at most every half an hour. After a week of failures a host is inactive: the engine parks its\n"+
		"deliveries, and tries one a day. A waiting delivery uses no attempt. A running engine follows\n"+
		"within seconds.",
		newHostList(a), newHostShow(a), newHostProbe(a), newHostPause(a), newHostResume(a))
}

// hostFacts returns the facts about a host, with the same keys as in JSON.
func hostFacts(h admin.Host) []fact {
	return []fact{{key: "host", value: h.Host, titled: true}, {key: "state", value: h.State}, {key: "software", value: h.Software},
		{key: "dialect", value: h.Dialect}, {key: "failures", value: strconv.Itoa(h.Failures)}, {key: "failing_since", value: stampOrNothing(h.FailingSince)},
		{key: "last_failure_at", value: stampOrNothing(h.LastFailure)}, {key: "last_error", value: h.LastError}, {key: "delivered_at", value: stampOrNothing(h.DeliveredAt)},
		{key: "next_attempt_at", value: stampOrNothing(h.NextAttempt)}, {key: "inactive_at", value: stampOrNothing(h.InactiveAt)}, {key: "paused_at", value: stampOrNothing(h.PausedAt)}}
}

func stampOrNothing(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Format(time.RFC3339)
}

// hostChange returns a command that changes one host by calling the function change. The
// parameter done is the word for the change in the result.
func (a *app) hostChange(name, short, long, done string, change func(admin.Hosts, context.Context, string) (admin.Host, error)) *cobra.Command {
	return &cobra.Command{
		Use:     name + " HOST [flags]",
		Short:   short,
		Long:    long,
		Example: "  lightweb host " + name + " social.example",
		Args:    takesArgs("HOST"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			return a.admin(ctx, func(t *admin.Tasks) error {
				h, err := change(t.Hosts, ctx, args[0])
				if err != nil {
					return err
				}
				return a.out.writeDone(done+" "+h.Host, h)
			})
		}),
	}
}

func newHostProbe(a *app) *cobra.Command {
	return a.hostChange("probe", "Find out now whether a host is back", "probe tries one waiting delivery at once, to a host whose breaker is open or that is inactive. If\n"+
		"it succeeds, the others follow; 'host show' tells. Exit code 73: the host is in neither state, or\n"+
		"is paused.", "probing", admin.Hosts.Probe)
}

func newHostPause(a *app) *cobra.Command {
	return a.hostChange("pause", "Hold back deliveries to a host", "pause holds back the deliveries to a host until 'host resume'. A waiting delivery uses no attempt,\n"+
		"but the engine gives it up after eight days, or thirty for a Delete, Undo or Move.", "paused", admin.Hosts.Pause)
}

func newHostResume(a *app) *cobra.Command {
	return a.hostChange("resume", "Let deliveries to a host go on", "resume lets deliveries to a host continue at once: it ends a pause, closes the breaker, and gives\nback the parked deliveries.",
		"resumed", admin.Hosts.Resume)
}
