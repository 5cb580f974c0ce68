package transport

import (
	"context"
	"errors"
	"net"

	"github.com/lightweb/lightweb/engine/fault"
)

// ErrPaused means that the operator has paused federation: the request was not made.
var ErrPaused error = fault.New(fault.Unavailable, "federation is paused on this server").WithCode("federation_paused")

// classifyError gives its kind to an error that came in place of an answer, or of the end of one.
func classifyError(ctx context.Context, err error) error {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case fault.Of(err) != nil: // the guard's
		return err
	case errors.Is(ctx.Err(), context.Canceled): // by our caller: our own limit is a deadline
		return fault.Wrap(fault.Busy, "the request was given up", err)
	case errors.As(err, &dns) && !dns.IsTimeout:
		return fault.Wrap(fault.NoHost, "the host does not resolve", err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fault.Wrap(fault.Unavailable, "the peer did not answer in time", err)
	default:
		return fault.Wrap(fault.Unavailable, "the peer could not be reached", err)
	}
}
