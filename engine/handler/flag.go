package handler

import (
	"context"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// newFlag returns the handler of Flag: an actor reports users or their objects to the operator.
// The pipeline of the inbox stores the report. No user sees it, not even the reported one.
func newFlag() Handler {
	return Handler{
		Final: true,
		Check: func(a *vocab.Activity) error {
			objects, err := a.Doc.IDs("object")
			if err == nil && len(objects) == 0 {
				err = fault.New(fault.Invalid, "a report needs an object").At("/object")
			}
			return err
		},
		Received: func(context.Context, *user.Tx, *Received) (Effects, error) { return Effects{}, ErrIgnored },
	}
}
