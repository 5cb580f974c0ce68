package handler

import "context"

// flag: somebody reports users or their posts to this server. It is not shown to the users it names, least of all to the
// reported one; the log tells the operator.
func flag() Handler {
	return Handler{Received: func(context.Context, Tx, *Received) error { return ErrIgnored }}
}
