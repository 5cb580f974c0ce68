package cmd

import "github.com/spf13/cobra"

func newCache(a *app) *cobra.Command {
	return newGroup("cache", "The cache of users' feeds", "cache deletes what Redis holds of users' feeds, and makes it again.", newCacheRebuild(a))
}
