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

// loseAnswer listens before the server, and returns its address. The first answer of the server
// that has the text is lost, and its connection breaks.
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
		_ = l.Close() // it listens no more
		running.Wait()
		if !isLost.Load() {
			r.Errorf("no answer with %q was lost", text)
		}
	})
	return l.Addr().String()
}

// pass passes on what a client and the server write, until one of them hangs up or the function
// loses returns true for an answer.
func (r *rig) pass(client net.Conn, loses func(answer []byte) bool) {
	defer client.Close()
	server, err := net.Dial("tcp", r.Addr)
	if err != nil {
		return // the client notices
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client) // the end of either ends both
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

// Redis hands out an event, and its answer is lost. The consumer gets that event before later ones.
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
