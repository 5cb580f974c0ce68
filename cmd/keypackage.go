package cmd

import "github.com/spf13/cobra"

func newKeyPackage(a *app) *cobra.Command {
	return newGroup("keypackage", "Key packages of users", "keypackage counts the key packages by which others add users' devices to encrypted conversations. Users' programs publish\n"+
		"them.",
		newKeyPackageStats(a))
}
