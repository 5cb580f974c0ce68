package holding

import (
	"context"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

// checked returns the error of RefuseHolder. If RefuseHolder panics, checked returns the error of
// the panic.
func checked(ctx context.Context) (err error, panicked bool) {
	defer func() {
		if r := recover(); r != nil {
			err, panicked = r.(error), true
		}
	}()
	return RefuseHolder(ctx, "the network"), false
}

func TestWhoHoldsAConnectionIsRefusedAndUnderTheRaceDetectorPanics(t *testing.T) {
	t.Parallel()
	if err, panicked := checked(t.Context()); err != nil || panicked {
		t.Errorf("Check = %v, panicked %t; want nil for who holds nothing", err, panicked)
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(MarkHolder(t.Context())))
	defer cancel()
	err, panicked := checked(inner)
	if err == nil || fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), "the network") {
		t.Errorf("Check = %v, want an Internal error that names what was asked for", err)
	}
	if panicked != strict {
		t.Errorf("panicked: %t, want %t in this build", panicked, strict)
	}
}
