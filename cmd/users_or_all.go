package cmd

import (
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// usersOrAll parses the users in args. It returns an error if the command has neither users nor
// --all, or has both. With --all it returns an empty list.
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
