package cmd

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
)

func newUser(a *app) *cobra.Command {
	return newGroup("user", "Users of this server", "user makes and shows the people who live on this server, and the tokens of their programs. A running engine\nfinds every change at once.",
		newUserCreate(a), newUserList(a), newUserShow(a), newUserSuspend(a), newUserUnsuspend(a), newUserDelete(a), newUserRotateKeys(a), newUserMove(a), newUserExport(a), newUserImport(a), newUserRedisACL(a), newUserConfig(a), newUserPasswd(a), newUserLinkOIDC(a), newUserToken(a), newUserAudit(a))
}

// userFacts returns the facts about a user, with the same keys as in JSON.
func userFacts(u admin.User) []fact {
	return []fact{
		{key: "user", value: u.Name.String(), titled: true},
		{key: "actor", value: string(u.Actor)},
		{key: "handle", value: u.Handle},
		{key: "database", value: u.Database},
		{key: "schema_version", value: strconv.Itoa(u.SchemaVersion)},
		{key: "keys", value: strings.Join(u.Keys, ", ")},
	}
}

// describeAge returns the time between now and t, in either order, in one unit. From two days on
// the unit is days. Below that it is the largest of hours, minutes and seconds that fits.
func describeAge(now, t time.Time) string {
	d := now.Sub(t).Abs()
	switch {
	case d >= 2*day:
		return fmt.Sprintf("%dd", d/day)
	case d >= time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
