package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// ErrPaused means that the operator has paused federation, so the request was not made.
var ErrPaused error = fault.New(fault.Unavailable, "federation is paused on this server").WithCode("federation_paused")

// ErrHalted means that a request got no answer, and that this process did not run for a part of its
// time, as after a SIGSTOP. So the failure shows nothing about the peer.
var ErrHalted error = fault.New(fault.Unavailable, "this server did not run for a while")

// haltTime is how much longer than its limit a request must have taken for ErrHalted.
const haltTime = 3 * time.Second

// excuseHalt returns err, the failure of a request with a time limit, as ErrHalted if the request
// ended so long after its limit that this process cannot have run all the time.
func excuseHalt(err error, took, limit time.Duration) error {
	if err == nil || took < limit+haltTime {
		return err
	}
	return fmt.Errorf("%w: %w", ErrHalted, err)
}

// classifyError wraps an error in a fault of the right kind. The error came in place of an
// answer, or before the answer's end.
func classifyError(ctx context.Context, err error) error {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case fault.Of(err) != nil: // a fault already, such as the guard's
		return err
	case errors.Is(ctx.Err(), context.Canceled): // the caller cancelled; the client's own limit gives DeadlineExceeded
		return fault.Wrap(fault.Busy, "the request was given up", err)
	case errors.As(err, &dns) && dns.IsNotFound: // any other failed look-up leaves open whether the host exists
		return fault.Wrap(fault.NoHost, "the host does not resolve", err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fault.Wrap(fault.Unavailable, "the peer did not answer in time", err)
	default:
		return fault.Wrap(fault.Unavailable, "the peer could not be reached", err)
	}
}
