package cmd

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func newConversation(a *app) *cobra.Command {
	return newGroup("conversation", "Encrypted conversations of users", "conversation shows the conversations that users take part in, and asks for a new MLS group of one. Nothing that is\n"+
		"said in them can be read here.",
		newConversationList(a), newConversationShow(a), newConversationReset(a))
}

// parseConversation reads two arguments: a user and the id of a conversation.
func parseConversation(args []string) (vocab.Username, uuid.UUID, error) {
	user, err := vocab.ParseUsername(args[0])
	if err != nil {
		return user, uuid.Nil, err
	}
	id, err := uuid.Parse(args[1])
	if err != nil {
		return user, id, fault.New(fault.Invalid, fmt.Sprintf("%.60q is not the id of a conversation", args[1])).WithHint("lightweb conversation list " + user.String())
	}
	return user, id, nil
}

// lookFailed returns the failure of a command that could not use the databases of some users. It
// returns nil if failures is empty.
func lookFailed(failures []admin.UserFailure) error {
	if len(failures) == 0 {
		return nil
	}
	f := failures[0]
	return fault.New(fault.Partial, fmt.Sprintf("%d users could not be looked at; the first one: %s: %s", len(failures), f.User, f.Error)).WithHint(f.Hint)
}
