package bench

import (
	"bufio"
	"context"
	"io"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Dial calls dialEngine and then closes the connection.
func Dial(ctx context.Context, address string) error {
	c, err := dialEngine(ctx, address)
	if err != nil {
		return err
	}
	return c.Close()
}

// Percentile is the function percentileOf, exported for tests.
func Percentile(latencies []time.Duration, share float64) time.Duration {
	return percentileOf(latencies, share)
}

// Limits returns the result of findLimits for a clock that ran one second on two cores.
func Limits(engine, postgres, client, busy time.Duration, waits map[string]int) string {
	c := clock{took: time.Second, known: true, usage: usage{engine, postgres, client, busy}, waits: waits}
	return c.findLimits(2)
}

// Socket is a WebSocket over which the engine sends frames.
type Socket struct{ frames *frames }

// NewSocket returns a socket over which the engine sends the given bytes.
func NewSocket(sent io.Reader) Socket {
	return Socket{&frames{io.NopCloser(sent), bufio.NewReader(sent)}}
}

// AwaitPush calls awaitPushes for the socket alone.
func (s Socket) AwaitPush(ctx context.Context, activity vocab.ID) error {
	_, err := awaitPushes(ctx, []*frames{s.frames}, activity)
	return err
}
