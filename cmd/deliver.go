package cmd

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newDeliver(a *app) *cobra.Command {
	return newGroup("deliver", "Deliveries to other servers, and their outcomes", "deliver shows how the deliveries of users' activities stand, tries them again, and drops them.",
		newDeliverStatus(a), newDeliverList(a), newDeliverShow(a), newDeliverRetry(a), newDeliverDrop(a))
}

// deliverFlags are the flags that select deliveries.
type deliverFlags struct {
	all      bool
	hosts    []string
	activity string
	since    span
}

func (f *deliverFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.all, "all", false, "choose all users")
	c.Flags().StringSliceVar(&f.hosts, "host", nil, "only to `HOST`; may be given several times")
	c.Flags().StringVar(&f.activity, "activity", "", "only of the activity with the id `URI`, or about the object that has it")
	c.Flags().Var(&f.since, "since", "only deliveries that are at most so old, such as 7d")
	c.Flags().Lookup("since").DefValue = ""
}

// choose returns the choice that the flags make among the deliveries of the users in args, or of
// all users.
func (f *deliverFlags) choose(a *app, args []string) (c admin.DeliveryChoice, err error) {
	c.All = f.all
	if c.Hosts, err = parseHosts(f.hosts); err != nil {
		return c, err
	}
	if c.Users, err = a.usersOrAll(args, f.all); err != nil {
		return c, err
	}
	if f.since > 0 {
		c.Since = time.Now().Add(-time.Duration(f.since))
	}
	if f.activity != "" {
		c.Activity, err = vocab.ParseID(f.activity)
	}
	return c, err
}

// jobOrActivity reads an argument that is either the id of a delivery job or that of an
// activity.
func jobOrActivity(arg string) (job uuid.UUID, id vocab.ID, err error) {
	if job, err := uuid.Parse(arg); err == nil && job.String() == strings.ToLower(arg) {
		return job, "", nil
	}
	if !strings.Contains(arg, ":") {
		return job, "", fault.New(fault.Usage, fmt.Sprintf("%.60q is neither the id of an activity nor that of a delivery job", arg)).WithHint("lightweb deliver list --all")
	}
	id, err = vocab.ParseID(arg)
	return uuid.UUID{}, id, err
}

// parseHosts returns hosts as deliveries store them.
func parseHosts(written []string) (hosts []string, err error) {
	for _, w := range written {
		host, err := admin.ParseHost(w)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host)
	}
	return hosts, nil
}

// hostOf returns the name that a table shows for a host.
func hostOf(host string) string {
	if host == "" {
		return "(this server)"
	}
	return host
}

// oneOf refuses a value of a flag that is not in the list all.
func oneOf(flag, value string, all []string) error {
	if slices.Contains(all, value) {
		return nil
	}
	return fault.New(fault.Usage, fmt.Sprintf("--%s %.40q is not one of %s", flag, value, strings.Join(all, ", ")))
}
