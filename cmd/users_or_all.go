package cmd

import (
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// usersOrAll reads the users that a command is about. That it is about everybody must be said:
// nobody is returned then.
func (a *app) usersOrAll(args []string, all bool) ([]vocab.Username, error) {
	if all == (len(args) > 0) {
		return nil, fault.New(fault.Usage, "give either users or --all").WithHint(a.command.CommandPath() + " --help")
	}
	users := make([]vocab.Username, len(args))
	for i, arg := range args {
		u, err := vocab.ParseUsername(arg)
		if err != nil {
			return nil, err
		}
		users[i] = u
	}
	return users, nil
}
