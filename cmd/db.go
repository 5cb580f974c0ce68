package cmd

import (
	"github.com/spf13/cobra"
)

func newDB(a *app) *cobra.Command {
	return group("db", "Databases of this server", "db shows the databases of the instance and its users, and brings them to the schema of this lightweb after an upgrade.",
		newDBMigrate(a), newDBStatus(a))
}
