package socket

import "fmt"

// Closing is the reason for which the engine ends a socket. Next returns it as its error.
type Closing struct {
	Code   int // the code with which a WebSocket is closed (RFC 6455 §7.4)
	Reason string
}

func (c *Closing) Error() string { return fmt.Sprintf("closed with %d: %s", c.Code, c.Reason) }

// The reasons for which the engine ends a socket.
var (
	GoingAway = &Closing{1001, "shutdown"}
	Misused   = &Closing{1008, "not a text"}
	TooFast   = &Closing{1008, "too many frames"}
	TooBig    = &Closing{1009, "frame too big"}
	Failed    = &Closing{1011, "internal error"}
	SetBack   = &Closing{1012, "the server was set back"} // the client reconnects, and gets a reset
	Revoked   = &Closing{4001, "token expired or revoked"}
	TooSlow   = &Closing{4002, "too slow"}
)

var closings = []*Closing{GoingAway, Misused, TooFast, TooBig, Failed, SetBack, Revoked, TooSlow}
