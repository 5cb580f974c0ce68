package cmd

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
)

func newDeliverRetry(a *app) *cobra.Command {
	var f deliverFlags
	var r admin.RetryChoice
	var waitLock span
	c := &cobra.Command{
		Use:   "retry [USER…|--all] [flags]",
		Short: "Try deliveries again",
		Long: "retry makes deliveries of every USER due now: those that failed, that are parked because their\n" +
			"host is inactive, and that wait for their next attempt. The running engine makes the attempt\n" +
			"within seconds; without one, the engine does so when it starts. A host whose breaker is open\n" +
			"gets one delivery first. retry leaves out activities that a Delete or Undo has taken back, hosts\n" +
			"that the policy refuses, and deliveries that another process is sending. Deliveries to a paused\n" +
			"host wait for 'host resume'.\n\n" +
			"A failed delivery gets one more attempt. With --reset-attempts it gets as many attempts, and as\n" +
			"much time, as a new one. With --wait this command sends the deliveries itself, also beside a\n" +
			"running engine, at most two at once to a host. Only one retry runs at a time: a second one ends\n" +
			"with exit code 75, or waits as long as --wait-lock says.\n\n" +
			"In a pipe it writes a line per user and host with user, host, deliveries, number sent, number\n" +
			"failed and the last error, separated by tabs. Exit code 3: some failed again. A delivery whose\n" +
			"inbox is gone is skipped: that is no failure.",
		Example: "  lightweb deliver retry --all --host back.example --reset-attempts\n  lightweb deliver retry alice --status failed --since 7d --dry-run\n  lightweb deliver retry --all --wait --quiet",
		Args:    takesArgs("[USER…]"),
		RunE: a.action(func(ctx context.Context, args []string) (err error) {
			if r.DeliveryChoice, err = f.choose(a, args); err != nil {
				return err
			}
			for _, s := range r.States {
				if err := oneOf("status", s, admin.RetryableStates()); err != nil {
					return err
				}
			}
			if a.command.Flags().Changed("limit") && r.Most < 1 {
				return fault.New(fault.Usage, fmt.Sprintf("--limit %d is not at least 1", r.Most))
			}
			if r.Concurrency < 1 || r.Concurrency > maxRetryHosts {
				return fault.New(fault.Usage, fmt.Sprintf("--concurrency %d is not from 1 to %d", r.Concurrency, maxRetryHosts))
			}
			r.WaitLock = time.Duration(waitLock)
			return a.admin(ctx, func(t *admin.Tasks) error {
				var end func()
				r.Progress, end = a.notices.progress("delivering")
				report, err := t.Deliveries.Retry(ctx, r)
				end()
				if err != nil {
					return err
				}
				if err := a.out.showRetried(report, r.Wait); err != nil {
					return err
				}
				return cmp.Or(someFailed(report.Failed, report.Matched, "deliveries failed again", "lightweb deliver status --all"), usersFailed(report.Failures))
			})
		}),
	}
	f.add(c)
	c.Flags().StringSliceVar(&r.States, "status", admin.RetryableStates(), "only what is `STATUS`: failed, parked, pending")
	c.Flags().IntVar(&r.Most, "limit", 0, "at most `N` deliveries: all unless given")
	c.Flags().BoolVar(&r.ResetAttempts, "reset-attempts", false, "give each as many attempts and as much time as a new delivery")
	c.Flags().BoolVar(&r.Wait, "wait", false, "send them in this process, and report the outcomes")
	c.Flags().IntVar(&r.Concurrency, "concurrency", 8, "with --wait: `N` hosts at once, 1 to 64")
	c.Flags().Var(&waitLock, "wait-lock", "wait so long for another retry to end")
	c.Flags().Lookup("wait-lock").DefValue = ""
	c.Flags().BoolVarP(&r.DryRun, "dry-run", "n", false, "change nothing, and report what would be done")
	return c
}

// maxRetryHosts is the largest value of --concurrency.
const maxRetryHosts = 64

func (p *printer) showRetried(r admin.RetryReport, waited bool) error {
	rows := make([][]string, len(r.Hosts))
	var next *time.Time
	for n, h := range r.Hosts {
		says := h.Error
		if h.Blocked {
			says = "refused by the policy"
		}
		if h.Paused {
			says = "paused: waits for 'host resume'"
		}
		if h.NextAt != nil && (next == nil || h.NextAt.Before(*next)) {
			next = h.NextAt
		}
		rows[n] = []string{h.User.String(), hostOf(h.Host), strconv.Itoa(h.Matched), strconv.Itoa(h.Delivered), strconv.Itoa(h.Failed), says}
	}
	if err := p.writeTable([]string{"USER", "HOST", "DUE", "SENT", "FAILED", "LAST ERROR"}, rows, r); err != nil || !p.terminal || p.quiet || p.json {
		return err
	}
	return p.writeText(p.describeRetry(r, waited, next) + "\n")
}

// describeRetry returns the summary of a retry for people. The parameter next is the time of the
// earliest next attempt, if there is one.
func (p *printer) describeRetry(r admin.RetryReport, waited bool, next *time.Time) string {
	words := fmt.Sprintf("%d deliveries are due", r.Requeued)
	switch {
	case r.DryRun:
		words = fmt.Sprintf("%d deliveries would be tried again", r.Matched-r.SkippedBlocked)
	case waited:
		words = fmt.Sprintf("%d delivered, %d failed again", r.Delivered, r.Failed)
		if r.Skipped > 0 {
			words += fmt.Sprintf(", %d skipped", r.Skipped)
		}
		if next != nil {
			words += ", the next try is at " + stamp(*next)
		}
	}
	switch {
	case r.AllPaused:
		words += "; those to other servers wait: federation.mode is paused"
	case r.Paused > 0:
		words += fmt.Sprintf("; %d to paused hosts wait for 'lightweb host resume'", r.Paused)
	}
	if !r.DryRun && r.Failed == 0 && len(r.Failures) == 0 {
		words = p.tick() + " " + words
	}
	return words
}
