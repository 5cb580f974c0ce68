package outbox

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// restrainAssistant refuses an action that an LLM engine may not do although its scope allows it,
// namely to write a non-public post to an actor that the user does not talk with.
func (o *Outbox) restrainAssistant(ctx context.Context, tx *user.Tx, x *exchange) error {
	if x.activity.Type != vocab.Create || audience.IsPublic(x.activity.Addressing) {
		return nil
	}
	for _, a := range x.named {
		talks, err := tx.Relationships.HasTalkedWith(ctx, o.Local.Followers(x.User), a.ID)
		if err != nil {
			return err
		}
		if !talks {
			return fault.New(fault.Forbidden, "the token may write in private only to actors the user already talks with").WithCode("stranger")
		}
	}
	return nil
}
