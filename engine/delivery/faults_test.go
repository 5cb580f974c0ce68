package delivery

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// scheduled means that the waits between attempts follow Backoff's schedule exactly.
const scheduled = time.Duration(0)

// fates has the results of deliveries to hosts that always give the same answer. For each answer
// it has: the number of requests in an attempt, the numbers of attempts at a post and at a Delete,
// the shortest time between attempts, and the final status of both deliveries. It also has the
// host's state after the first attempt, and after four weeks of attempts at a Delete.
var fates = []struct {
	answers       string // statuses of answers, or names of failures
	retryAfter    string
	requests      int
	posts, delete int
	apart         time.Duration
	ends          string
	first, month  string
}{
	{"200 201 202 203 204 205 206 226 299", "", 1, 1, 1, scheduled, user.DeliveryDelivered, HostOK, HostOK},
	{"202", "3600", 1, 1, 1, scheduled, user.DeliveryDelivered, HostOK, HostOK}, // after a success, Retry-After does not matter
	{"300 301 302 303 304 305 307 308 399", "", 1, 7, daily, scheduled, user.DeliveryFailed, HostOK, HostOK},
	{"302", "1000000000", 1, 7, monthly, day, user.DeliveryFailed, HostOK, HostOK},
	{"400 401 403", "", 2, 3, 3, scheduled, user.DeliveryFailed, HostOK, HostOK}, // the second request uses the other dialect
	{"402 405 406 407 409 411 412 413 414 415 417 418 421 422 423 424 425 426 428 431 451 499", "", 1, 3, 3, scheduled, user.DeliveryFailed, HostOK, HostOK},
	{"401", "1000000000", 2, 3, 3, day, user.DeliveryFailed, HostOK, HostOK},
	{"413", "1000000000", 1, 3, 3, day, user.DeliveryFailed, HostOK, HostOK},
	{"404 410", "", 1, 1, 1, scheduled, user.DeliverySkipped, HostOK, HostOK},
	{"404 410", "3600", 1, 1, 1, scheduled, user.DeliverySkipped, HostOK, HostOK},
	{"501", "", 1, 1, 1, scheduled, user.DeliveryFailed, HostOK, HostOK},
	{"501", "3600", 1, 1, 1, scheduled, user.DeliveryFailed, HostOK, HostOK},
	{"408 429", "", 1, 7, daily, scheduled, user.DeliveryFailed, HostOK, HostOK},
	{"408", "1000000000", 1, 7, monthly, day, user.DeliveryFailed, HostOK, HostOK},
	{"429 503", "3600", 1, 7, daily, time.Hour, user.DeliveryFailed, HostOpen, HostOK},
	{"429 503", "1000000000", 1, 7, monthly, day, user.DeliveryFailed, HostOpen, HostOpen},
	{"429 503", "99999999999999999999999", 1, 7, monthly, day, user.DeliveryFailed, HostOpen, HostOpen},
	{"429 503", "Fri, 31 Dec 9999 23:59:59 GMT", 1, 7, monthly, day, user.DeliveryFailed, HostOpen, HostOpen},
	{"429", "-5", 1, 7, daily, scheduled, user.DeliveryFailed, HostOK, HostOK},
	{"429", "0", 1, 7, daily, scheduled, user.DeliveryFailed, HostOK, HostOK},
	{"429", "Sun, 06 Nov 1994 08:49:37 GMT", 1, 7, daily, scheduled, user.DeliveryFailed, HostOK, HostOK},
	{"429", "soon, 1e9", 1, 7, daily, scheduled, user.DeliveryFailed, HostOK, HostOK},
	{"500 502 503 504 505 507 508 511 520 599", "", 1, 7, daily, scheduled, user.DeliveryFailed, HostFailing, HostInactive},
	{"500", "1000000000", 1, 7, monthly, day, user.DeliveryFailed, HostFailing, HostInactive},
	{"000 101 600 999", "", 1, 7, daily, scheduled, user.DeliveryFailed, HostOK, HostOK}, // these statuses are not valid, and the host does answer
	{"refused nohost reset silent closed garbage untls selfsigned headers interim", "", 1, 7, daily, scheduled, user.DeliveryFailed, HostFailing, HostInactive},
}

// These are the numbers of attempts at a Delete. With daily, the first two days have the attempts
// of the schedule, and each later day until the thirtieth has one. With monthly, each day has one
// from the first on. A wait may be a tenth longer or shorter, so the constant slack is the
// permitted difference.
const (
	daily   = 35
	monthly = 30
	slack   = 4
)

// failures has the ways in which a host fails to answer.
var failures = map[string]func(net.Conn){
	"reset": func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0) // so that Close sends a reset
	},
	"silent": func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c) // until the client closes the connection
	},
	"closed": func(c net.Conn) {
		_, _ = http.ReadRequest(bufio.NewReader(c)) // the connection is closed after this
	},
	"garbage": func(c net.Conn) {
		_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.9\r\n")
	},
	"headers": func(c net.Conn) { // sends a megabyte of headers
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n"+strings.Repeat("X-Padding: "+strings.Repeat("x", 1000)+"\r\n", 1000)+"\r\n")
	},
	"interim": func(c net.Conn) { // sends only interim answers
		_, _ = http.ReadRequest(bufio.NewReader(c))
		_, _ = io.WriteString(c, strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100))
	},
}

// experience is the result of an attempt at a host, and the number of requests in the attempt.
type experience struct {
	transport.Attempt
	err      error
	requests int
}

// provoke makes an attempt at a host over a real connection. The host gives the answer in the
// parameter answers.
func provoke(t *testing.T, c *transport.Client, keys transport.Keys, answers, retryAfter string) (got experience) {
	t.Helper()
	if answers == "nohost" { // no name has to be looked up for this failure
		return experience{err: fault.New(fault.NoHost, "no such host"), requests: 1}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	scheme, asked := "http", 0
	answer := failures[answers]
	switch answers {
	case "untls":
		scheme, answer = "https", failures["garbage"]
	case "selfsigned":
		s := httptest.NewUnstartedServer(nil)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		defer s.Close()
		scheme, answer = "https", func(c net.Conn) {
			_ = tls.Server(c, s.TLS).HandshakeContext(t.Context()) // fails, because the client closes the connection
		}
	}
	if answer == nil {
		answer = func(c net.Conn) {
			r, err := http.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 %s X\r\nConnection: close\r\nContent-Length: 0\r\nRetry-After: %s\r\n\r\n", answers, retryAfter)
		}
	}
	done := make(chan struct{})
	if answers == "refused" {
		_ = listener.Close()
	}
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			asked++
			answer(conn)
			_ = conn.Close()
		}
	}()
	got.Attempt, got.err = c.Post(t.Context(), transport.Post{Inbox: vocab.ID(scheme + "://" + listener.Addr().String() + "/inbox"), Body: []byte("{}"), As: keys})
	_ = listener.Close()
	<-done
	got.requests = max(1, asked)
	return got
}

// anyHost permits requests to every host, and stores nothing about the hosts.
type anyHost struct{}

func (anyHost) Check(string) error                                        { return nil }
func (anyHost) Dialect(context.Context, string) (signature.Dialect, bool) { return 0, false }
func (anyHost) Learn(context.Context, string, signature.Dialect)          {}

// The test provokes every answer and every failure once, over a real connection. It then repeats
// the results for a month of simulated time.
func TestWhatBecomesOfADelivery(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays days or weeks, and other tests their first minutes")
	}
	t.Parallel()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys := transport.Keys{RSA: signature.Key{ID: "https://here.example/u#main-key", Private: private}}
	c := transport.New(transport.Config{AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true, Timeout: 2 * time.Second}, anyHost{}, anyHost{})
	defer c.Close()
	heard := map[string]experience{} // results by the names of hosts
	for n, f := range fates {
		for _, answers := range strings.Fields(f.answers) {
			e := provoke(t, c, keys, answers, f.retryAfter)
			if e.requests != f.requests {
				t.Errorf("%s %s: %d requests in one attempt, want %d", answers, f.retryAfter, e.requests, f.requests)
			}
			heard[fmt.Sprintf("%s.%d.post.example", answers, n)], heard[fmt.Sprintf("%s.%d.delete.example", answers, n)] = e, e
		}
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, func(_ context.Context, p transport.Post) (transport.Attempt, error) {
			e := heard[p.Inbox.Host()]
			return e.Attempt, e.err
		})
		b.m.nobody = true // so that only sweeps find the user
		places := map[string]int{}
		for _, host := range slices.Sorted(maps.Keys(heard)) {
			kind := "Create"
			if strings.HasSuffix(host, ".delete.example") {
				kind = "Delete"
			}
			places[host] = b.m.add(kind, host, 1, 0)
		}
		b.run(t)
		b.wake(alice)
		synctest.Wait()
		first := b.states()
		time.Sleep(29 * day)
		synctest.Wait()
		month, monthAt := b.states(), b.Now()
		time.Sleep(4 * day)
		synctest.Wait()
		times := map[string][]time.Time{}
		for _, p := range b.peers.all() {
			times[p.host] = append(times[p.host], p.at)
		}
		for n, f := range fates {
			for _, answers := range strings.Fields(f.answers) {
				name := strings.TrimSpace(answers + " " + f.retryAfter)
				post, remove := fmt.Sprintf("%s.%d.post.example", answers, n), fmt.Sprintf("%s.%d.delete.example", answers, n)
				if got := len(times[post]); got != f.posts {
					t.Errorf("%s: %d attempts at a post, want %d", name, got, f.posts)
				}
				if got := len(times[remove]); got != f.delete && (f.delete < monthly || got < f.delete-slack || got > f.delete+slack) {
					t.Errorf("%s: %d attempts at a Delete, want %d", name, got, f.delete)
				}
				apart(t, name+": post", times[post], f.apart)
				apart(t, name+": Delete", times[remove], f.apart)
				for _, host := range []string{post, remove} {
					r := b.m.row(places[host])
					if r.status != f.ends || r.Attempts != len(times[host]) || (r.last.Error == "") != (f.ends == user.DeliveryDelivered) {
						t.Errorf("%s: ended as %s after %d attempts, with %q; want %s after all that were made", name, r.status, r.Attempts, r.last.Error, f.ends)
					}
					if status := fmt.Sprint(r.last.HTTPStatus); r.last.Error != "" && r.last.HTTPStatus > 0 && f.ends != user.DeliverySkipped && !strings.Contains(r.last.Error, status) {
						t.Errorf("%s: ended with %q, which does not name the status", name, r.last.Error)
					}
					if r.last.RetryAfter > day {
						t.Errorf("%s: remembered to wait for %v", name, r.last.RetryAfter)
					}
					if got := first[host]; got != f.first {
						t.Errorf("%s: after an attempt the host is %s, want %s", name, got, f.first)
					}
				}
				want := f.month
				if f.first == HostOpen { // each attempt opens the breaker for the time in Retry-After
					want = opened(times[remove], monthAt, f.apart)
				}
				if got := month[remove]; got != want {
					t.Errorf("%s: after four weeks the host is %s, want %s", name, got, want)
				}
			}
		}
	})
}

// apart fails the test unless the waits between attempts follow the schedule. No wait may be
// shorter than the parameter atLeast.
func apart(t *testing.T, what string, at []time.Time, atLeast time.Duration) {
	t.Helper()
	for n := 1; n < len(at); n++ {
		wait, again := Backoff(n)
		if !again {
			wait = day
		}
		low, high := max(wait*9/10, atLeast), max(wait*11/10, atLeast)+2*time.Minute // the probe of an inactive host may come 2 minutes late
		if got := at[n].Sub(at[n-1]); got < low || got > high {
			t.Errorf("%s: attempt %d came after %v, want %v to %v", what, n+1, got, low, high)
			return
		}
	}
}

// opened returns the state of a host at a time. Each attempt opens the host's breaker for the
// duration in the parameter wait.
func opened(attempts []time.Time, at time.Time, wait time.Duration) string {
	for _, a := range attempts {
		if !a.After(at) && at.Sub(a) < wait {
			return HostOpen
		}
	}
	return HostOK
}

// states returns the state of every host.
func (b *bench) states() map[string]string {
	all := map[string]string{}
	b.m.mu.Lock()
	for _, r := range b.m.rows {
		all[r.Host] = HostOK
	}
	b.m.mu.Unlock()
	b.look(func(l *loop) {
		for name, h := range l.queues.hosts {
			all[name] = h.stateName(b.Now())
		}
	})
	return all
}
