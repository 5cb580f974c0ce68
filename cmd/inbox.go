package cmd

import (
	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newInbox(a *app) *cobra.Command {
	return newGroup("inbox", "Accepted activities that users do not have yet", "inbox lists, retries and drops activities that the engine accepted and could not give to a user:\n"+
		"those set aside because applying them failed, and those that wait in the journal until the engine\n"+
		"can use the user's database.",
		newInboxList(a), newInboxRetry(a), newInboxDrop(a))
}

// inboxFlags are the flags that all subcommands of inbox have.
type inboxFlags struct {
	choice   admin.InboxChoice
	activity string
}

func (f *inboxFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.choice.All, "all", false, "choose all users")
	c.Flags().StringVar(&f.activity, "activity", "", "only the activity with the id `URI`")
}

// choose returns the choice that the flags make among the activities of the users in args, or of
// all users.
func (f *inboxFlags) choose(a *app, args []string) (admin.InboxChoice, error) {
	c := f.choice
	var err error
	if c.Users, err = a.usersOrAll(args, c.All); err != nil {
		return c, err
	}
	if f.activity != "" {
		c.Activity, err = vocab.ParseID(f.activity)
	}
	return c, err
}
