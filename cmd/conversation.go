package cmd

import (
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

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
