package inbox

import "context"

// validateSchema refuses shapes and origins that cannot take effect, whoever receives them.
func (i *Inbox) validateSchema(_ context.Context, x *receiving) error {
	return i.Handlers.Check(x.Activity)
}
