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
		Long: "retry makes the deliveries of every USER due now that failed, are parked because their host is inactive, or wait for\n" +
			"their next attempt: the running engine makes it within seconds, else the next one does. A host that is left alone is\n" +
			"tried with one delivery first. An activity taken back since by a Delete or Undo is not tried again, nor what goes to a\n" +
			"host that the policy refuses, or what another process is sending. Deliveries to a paused host wait for 'host resume'.\n\n" +
			"One that is given up has one more attempt; with --reset-attempts as many and as much time as a new one. With --wait\n" +
			"they are sent in this process, to other servers, two at once to a host and beside a running engine. One runs at a\n" +
			"time: another one ends with 75, or waits for as long as --wait-lock says.\n\n" +
			"In a pipe: a line per user and host with user, host, deliveries, how many were sent and failed again, and the last\n" +
			"error, separated by tabs. Exit code 3 says that some failed again. One is skipped, and has not failed, if its inbox is\n" +
			"gone: it is not tried any more.",
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
	c.Flags().BoolVar(&r.ResetAttempts, "reset-attempts", false, "begin anew with each, as if it were owed from now on")
	c.Flags().BoolVar(&r.Wait, "wait", false, "send them in this process, and report what became of them")
	c.Flags().IntVar(&r.Concurrency, "concurrency", 8, "with --wait: `N` hosts at once, 1 to 64")
	c.Flags().Var(&waitLock, "wait-lock", "wait so long for another one that runs")
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
