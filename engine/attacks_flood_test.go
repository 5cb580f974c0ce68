package engine_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// During a flood, the engine's memory and goroutines stay within bounds. After it they are freed.
// With LIGHTWEB_SIEGE the floods have the size that docs/security.md gives, and the log contains
// the figures.
func TestAFloodOfAttacksIsSurvived(t *testing.T) {
	t.Parallel()
	s := newSiege(t, "LIGHTWEB_LIMITS_KEY_FETCH_RATE=20/min", "LIGHTWEB_LOG_LEVEL=info")
	s.row.id = "flood"
	far := peertest.New(t, "127.0.0.4")
	bad, slow, keys, bombs := sized(200, 10_000), sized(40, 1000), sized(50, 1000), sized(3, 20)
	bomb := packed(s, append(s.served("/bomb").JSON(), make([]byte, sized(16<<20, 1<<30))...))
	s.besides(fmt.Sprintf("%d bad requests", bad), func() {
		s.at32(bad, func(n int) {
			switch n % 4 {
			case 0:
				s.answered(s.text("{"), 400)
			case 1:
				s.unauthorized(s.forge(peertest.Forgery{Sent: "{}"}))
			case 2:
				s.answered(s.forge(peertest.Forgery{After: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }}), 415)
			case 3:
				s.answered(enginetest.Fetch(s, fmt.Sprint(s.home.URL, "/users/nobody", n)), 404)
			}
		})
	})
	s.besides(fmt.Sprintf("%d connections that send a byte at a time", slow), func() {
		at := "Host: " + host(s.home.URL) + "\r\nContent-Type: " + vocab.ActivityJSON + "\r\n"
		var all sync.WaitGroup
		for _, head := range []string{"POST /inbox HTTP/1.1\r\n" + at + "Content-Length: 1000000\r\n\r\n", "GET /actor HTTP/1.1\r\n" + at + "X: "} {
			all.Go(func() { s.slowly(slow/2, head) })
		}
		all.Wait()
	})
	s.besides("a body of 1 GB in chunks", func() {
		part := bytes.Repeat([]byte(" "), 64<<10)
		a, _ := s.pour("POST /inbox HTTP/1.1\r\nHost: "+host(s.home.URL)+"\r\nTransfer-Encoding: chunked\r\n\r\n", fmt.Appendf(nil, "%x\r\n%s\r\n", len(part), part))
		s.answered(a, 413)
	})
	s.besides(fmt.Sprintf("%d answers of %d MiB, packed to %d kB", bombs, sized(16<<20, 1<<30)>>20, len(bomb)>>10), func() {
		s.at32(bombs, func(n int) {
			s.answered(s.boost(s.show(fmt.Sprint("/bomb", n), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(bomb) // the engine may have hung up
			})), 202, 503)
		})
	})
	s.besides(fmt.Sprintf("%d unknown keys on one server", keys), func() {
		s.at32(keys, func(n int) {
			s.answered(s.claim("", fmt.Sprint(far.Origin, "/users/", n), signature.RFC9421), 401, 429, 503)
		})
	})
	s.settle()
}

// sized returns the size of an attack: full if LIGHTWEB_SIEGE is set, and small otherwise.
func sized(small, full int) int {
	if os.Getenv("LIGHTWEB_SIEGE") != "" {
		return full
	}
	return small
}

// at32 calls do() n times, with at most 32 calls at once.
func (s *siege) at32(n int, do func(n int)) {
	turns := make(chan int)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			for n := range turns {
				do(n)
			}
		})
	}
	for n := range n {
		turns <- n
	}
	close(turns)
	all.Wait()
}

// usage holds how many bytes of memory and how many goroutines the engine uses.
type usage struct{ memory, goroutines float64 }

func (u usage) String() string { return fmt.Sprintf("%.0f MiB, %.0f", u.memory/(1<<20), u.goroutines) }

func (s *siege) usage() usage {
	return usage{s.home.Metric(s, "process_resident_memory_bytes"), s.home.Metric(s, "go_goroutines")}
}

// The bounds of the cost of a flood.
const (
	floodMemory     = 256 << 20 // bytes
	floodGoroutines = 50        // that many may remain, for connections that end soon
)

// flood runs do(). It logs the engine's usage before, during and after do(), and returns the usage
// after it.
func (s *siege) flood(what string, do func()) (after usage) {
	s.Helper()
	return s.floodWithin(floodMemory, what, do)
}

// besides runs do() as flood does. Meanwhile carol sends Likes of alice's note ten times a second,
// from an address of her own. The engine must answer each Like 202.
func (s *siege) besides(what string, do func()) {
	s.Helper()
	honest := s.from("127.3.0.9")
	s.flood(what, func() {
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for {
				honest.accepted(honest.post(s.carol, s.alice.ID+"/inbox", s.like(s.carol, fmt.Sprint("beside-", time.Now().UnixNano()))))
				select {
				case <-stop:
					return
				case <-tick.C:
				}
			}
		}()
		do()
		close(stop)
		<-done
		honest.client.CloseIdleConnections()
	})
}

// floodWithin runs do() as flood does. The parameter memory bounds the additional memory, in
// bytes.
func (s *siege) floodWithin(memory float64, what string, do func()) (after usage) {
	s.Helper()
	before := s.usage()
	most, stop, done := before, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				now := s.usage()
				most = usage{max(most.memory, now.memory), max(most.goroutines, now.goroutines)}
			}
		}
	}()
	do()
	close(stop)
	<-done
	besieger.CloseIdleConnections()
	after = s.usage()
	enginetest.Eventually(s, "the goroutines of "+what+" end", func() bool {
		after = s.usage()
		return after.goroutines < before.goroutines+floodGoroutines
	})
	s.Logf("| %s | %v | %v | %v |", what, before, most, after)
	if most.memory > before.memory+memory {
		s.Errorf("%s took %v, before it was %v", what, most, before)
	}
	return after
}
