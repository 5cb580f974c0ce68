package cmd

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// redisAccess is the result of user redis-acl. Only this result shows the password.
type redisAccess struct {
	User      vocab.Username `json:"user"`
	RedisUser string         `json:"redis_user"`
	Password  string         `json:"password"`
	Command   string         `json:"command"`
	Applied   bool           `json:"applied"`
	Saved     bool           `json:"saved"`
}

func newUserRedisACL(a *app) *cobra.Command {
	var apply bool
	c := &cobra.Command{
		Use:   "redis-acl NAME [flags]",
		Short: "Let a program read a user's events in Redis",
		Long: "redis-acl writes the command that makes a Redis user for a program that reads the events of\n" +
			"NAME. The command has a new password, which is shown this once. The program can read that\n" +
			"stream, alone or in a consumer group, and can add to its dead letters; it can use no other key.\n" +
			"--apply makes the Redis user at once; a second --apply replaces the password. Without an aclfile\n" +
			"Redis forgets the user when it ends: apply it again after each start.",
		Example: "  lightweb user redis-acl alice\n  lightweb user redis-acl alice --apply",
		Args:    takesArgs("NAME"),
		RunE: a.action(func(ctx context.Context, args []string) error {
			if a.quiet {
				return fault.New(fault.Usage, "--quiet would hide the password, which is shown once only")
			}
			user, err := vocab.ParseUsername(args[0])
			if err != nil {
				return err
			}
			return a.admin(ctx, func(t *admin.Tasks) error { return a.giveRedisAccess(ctx, t.Users, user, apply) })
		}),
	}
	c.Flags().BoolVar(&apply, "apply", false, "make the user in Redis")
	return c
}

// giveRedisAccess makes a password and shows the Redis command for a user with that password. If
// apply is true, it also makes that user in Redis.
func (a *app) giveRedisAccess(ctx context.Context, users admin.Users, user vocab.Username, apply bool) error {
	made := redisAccess{User: user, Password: rand.Text(), Applied: apply}
	access, err := users.RedisAccess(ctx, user, made.Password)
	if err != nil {
		return err
	}
	made.RedisUser, made.Command = access.Name, "ACL SETUSER "+access.Name+" "+strings.Join(access.Rules, " ")
	if apply {
		if made.Saved, err = users.GrantRedisAccess(ctx, access); err != nil {
			return err
		}
	}
	return a.out.showRedisAccess(made)
}

func (p *printer) showRedisAccess(made redisAccess) error {
	facts := []fact{
		{key: "user", value: made.User.String(), titled: true},
		{key: "redis_user", value: made.RedisUser},
		{key: "password", value: made.Password, note: " — shown once"},
	}
	words := "wrote the command for"
	switch {
	case made.Saved:
		words = "made, in the aclfile of Redis, the access to the events of"
	case made.Applied:
		words = "made, until Redis ends, the access to the events of"
	default:
		facts = append(facts, fact{key: "command", value: made.Command})
	}
	title := fmt.Sprintf("%s %s %s", p.tick(), words, p.style().Bold(true).Render(made.User.String()))
	return p.writeFacts(title, facts, made)
}
