package handler

import (
	"context"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// flag: somebody reports users or their objects to the operator, and Receive keeps it. It is nothing to any user,
// least of all to the one who is reported.
func flag() Handler {
	return Handler{
		Final: true,
		Check: func(a *vocab.Activity) error {
			objects, err := a.Doc.IDs("object")
			if err == nil && len(objects) == 0 {
				err = fault.New(fault.Invalid, "a report needs an object").At("/object")
			}
			return err
		},
		Received: func(context.Context, Tx, *Received) (Effects, error) { return Effects{}, ErrIgnored },
	}
}
