package cmd

import (
	"github.com/spf13/cobra"
)

func newActor(a *app) *cobra.Command {
	return newGroup("actor", "Actors of other servers", "actor shows what this server knows of actors elsewhere and can find out, and which of them it does not hear.",
		newActorFetch(a), newActorSuspend(a), newActorUnsuspend(a), newActorList(a))
}
