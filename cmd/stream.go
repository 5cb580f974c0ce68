package cmd

import "github.com/spf13/cobra"

func newStream(a *app) *cobra.Command {
	return newGroup("stream", "Streams of users' events", "stream shows what happens to a user, as other programs read it from the user's stream in Redis.", newStreamTail(a))
}
