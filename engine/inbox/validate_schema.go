package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/conversation"
)

// validateSchema refuses an activity that cannot take effect for any recipient because of its
// shape or the origins of its ids. It also refuses an object of a type that must be encrypted if
// the object has plain text, and a large body that is not an MLS message.
func (i *Inbox) validateSchema(_ context.Context, x *receiving) error {
	if err := i.Handlers.Check(x.Activity); err != nil {
		return err
	}
	if err := conversation.CheckCiphertext(x.Activity.Object.Doc); err != nil {
		return err
	}
	return checkLargeMessage(x)
}
