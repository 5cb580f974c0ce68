package cmd

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
)

// notifier tells systemd the state of the service (sd_notify(3)). The zero notifier does
// nothing.
type notifier struct {
	socket string
	every  time.Duration // how often the watchdog gets a beat: half of its timeout; 0: never
}

func newNotifier(getenv func(string) string, pid int) notifier {
	n := notifier{socket: getenv("NOTIFY_SOCKET")}
	usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	// WATCHDOG_PID is the process that is watched, which may be our parent.
	if p := getenv("WATCHDOG_PID"); err == nil && usec > 0 && (p == "" || p == strconv.Itoa(pid)) {
		n.every = time.Duration(usec) * time.Microsecond / 2
	}
	return n
}

// sendState sends one state, such as READY=1.
func (n notifier) sendState(state string) error {
	if n.socket == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: n.socket, Net: "unixgram"}) // net accepts a leading @, which means an abstract socket
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer c.Close()
	if _, err := c.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}

// feedWatchdog sends the watchdog a beat at every interval until ctx ends. If beats are lost,
// the watchdog acts on that, so errors are ignored.
func (n notifier) feedWatchdog(ctx context.Context) {
	if n.every <= 0 {
		return
	}
	t := time.NewTicker(n.every)
	defer t.Stop()
	for {
		_ = n.sendState("WATCHDOG=1") // an error is ignored
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
