package admin

import (
	"context"

	"github.com/lightweb/lightweb/db"
)

// AcquaintOptions says for which users to rebuild acquaintances.
type AcquaintOptions = db.Acquainting

// AcquaintReport is the result of Acquaint.
type AcquaintReport = db.AcquaintReport

// Acquaint rebuilds the acquaintances from the users' databases (see
// db.Cluster.MakeAcquaintances). An acquaintance is a row that says that an actor may concern a
// user. An error with one user does not stop the others. The fault is Busy when another process
// rebuilds acquaintances, and NoUser when a named user does not exist or is deleted.
func (dbs Databases) Acquaint(ctx context.Context, a AcquaintOptions) (AcquaintReport, error) {
	return dbs.in.DB.MakeAcquaintances(ctx, a, dbs.in.Local.ID)
}
