package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/conversation"
)

// validateSchema refuses shapes and origins that cannot take effect, whoever receives them, and
// plain text under a type that must be encrypted.
func (i *Inbox) validateSchema(_ context.Context, x *receiving) error {
	if err := i.Handlers.Check(x.Activity); err != nil {
		return err
	}
	return conversation.CheckCiphertext(x.Activity.Object.Doc)
}
