package cmd

import (
	"github.com/spf13/cobra"
)

func newDB(a *app) *cobra.Command {
	return newGroup("db", "Databases of this server", "db shows the databases of the instance and its users, brings them to the schema of this lightweb after an upgrade, and makes again what the instance knows of them.",
		newDBMigrate(a), newDBStatus(a), newDBAcquaint(a))
}
