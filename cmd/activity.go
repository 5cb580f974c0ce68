package cmd

import "github.com/spf13/cobra"

func newActivity(a *app) *cobra.Command {
	return newGroup("activity", "Activities and posts", "activity tells where an activity or post is, and why.", newActivityShow(a))
}
