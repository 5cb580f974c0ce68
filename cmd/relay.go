package cmd

import "github.com/spf13/cobra"

func newRelay(a *app) *cobra.Command {
	return newGroup("relay", "Relays of public posts", "relay subscribes to relays: servers that pass the public posts of each subscriber on to all others (FEP-ae0c). A post that a\n"+
		"relay passes on is kept for users who follow its author or are addressed by it. A running server follows within two\n"+
		"seconds.",
		newRelayAdd(a), newRelayList(a), newRelayRemove(a))
}
