package consumer_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/event"
)

// loseAnswer starts a proxy to the server, and returns the proxy's address. The first answer of
// the server that contains the text is lost, and its connection is closed.
func (r *rig) loseAnswer(text string) string {
	r.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	var running sync.WaitGroup
	var isLost atomic.Bool
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // the test has ended
			}
			running.Go(func() {
				r.pass(client, func(answer []byte) bool {
					return bytes.Contains(answer, []byte(text)) && isLost.CompareAndSwap(false, true)
				})
			})
		}
	})
	r.Cleanup(func() {
		_ = l.Close() // the proxy accepts no further connections
		running.Wait()
		if !isLost.Load() {
			r.Errorf("no answer with %q was lost", text)
		}
	})
	return l.Addr().String()
}

// pass forwards data between a client and the server. It ends when one of them hangs up, or when
// loses() returns true for an answer of the server.
func (r *rig) pass(client net.Conn, loses func(answer []byte) bool) {
	defer client.Close()
	server, err := net.Dial("tcp", r.Addr)
	if err != nil {
		return // the client gets an error
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client) // when either side ends, both ends are closed
		_ = server.Close()
	}()
	answer := make([]byte, 64<<10)
	for {
		n, err := server.Read(answer)
		if err != nil || loses(answer[:n]) {
			return
		}
		if _, err := client.Write(answer[:n]); err != nil {
			return
		}
	}
}

// Redis delivers an event, and its answer is lost. The consumer gets this event before later
// events.
func TestAnEventWhoseAnswerWasLostIsHandledInItsPlace(t *testing.T) {
	t.Parallel()
	r, h := newRig(t), &handled{}
	access := r.store.StreamAccess(r.alice, event.Stream, "secret")
	r.store = r.open("redis://" + access.Name + ":secret@" + r.loseAnswer("event-2"))
	r.emit(1)
	r.start("one", time.Minute, h.handle)
	r.wantHandled(h, 1)
	r.emit(2, 3)
	r.wantHandled(h, 1, 2, 3)
	r.wantPending(0)
}
