package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// answerTime is the time limit of one request with its answer, and of a wait for something that
// the engine must do.
const answerTime = time.Minute

// conn is a connection over which requests are sent one after another, as bytes that were
// prepared earlier.
type conn struct {
	net.Conn
	answers *bufio.Reader
}

// dialEngine connects to an address of loopback. All connections of this package are made here,
// so that no benchmark can put load on another machine.
func dialEngine(ctx context.Context, address string) (*conn, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Unmap().IsLoopback() {
		return nil, fault.New(fault.Forbidden, fmt.Sprintf("%.60q is not an address of loopback: nothing else is put under load", address))
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &conn{c, bufio.NewReader(c)}, nil
}

// sendRequest sends a request and reads its answer.
func (c *conn) sendRequest(request []byte) (status int, body []byte, err error) {
	if err := c.SetDeadline(time.Now().Add(answerTime)); err != nil {
		return 0, nil, err
	}
	if _, err := c.Write(request); err != nil {
		return 0, nil, fmt.Errorf("send: %w", err)
	}
	r, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("read the answer: %w", err)
	}
	defer r.Body.Close()
	if body, err = io.ReadAll(r.Body); err != nil {
		return 0, nil, fmt.Errorf("read the answer: %w", err)
	}
	return r.StatusCode, body, nil
}

// answered says when a request ended, and has the error if the request failed.
type answered struct {
	at  time.Time
	err error
}

// beginRequest sends a request in the background. The channel reports an error if the status of
// the answer is not equal to want.
func (c *conn) beginRequest(request []byte, want int) <-chan answered {
	end := make(chan answered, 1)
	go func() {
		status, body, err := c.sendRequest(request)
		if err == nil {
			err = checkStatus(status, want, body)
		}
		end <- answered{time.Now(), err}
	}()
	return end
}

// checkStatus returns an error unless status equals want.
func checkStatus(status, want int, body []byte) error {
	if status == want {
		return nil
	}
	return fault.New(fault.Protocol, fmt.Sprintf("the engine answered %d, not %d: %.200s", status, want, body))
}

// encodeRequest returns the bytes of a request, as they are sent.
func encodeRequest(r *http.Request) ([]byte, error) {
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return nil, fmt.Errorf("write a request: %w", err)
	}
	return b.Bytes(), nil
}

// apiRequest returns a request to the client API with a user's token. A body that is not nil is
// sent as JSON.
func apiRequest(ctx context.Context, method, url, token string, body any) ([]byte, error) {
	return keyedRequest(ctx, method, url, token, "", body)
}

// keyedRequest is apiRequest with an Idempotency-Key, unless key is empty.
func keyedRequest(ctx context.Context, method, url, token, key string, body any) ([]byte, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return encodeRequest(r)
}

// anonymousRequest returns a request for a document, without a token or signature.
func anonymousRequest(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", vocab.MediaType)
	return encodeRequest(r)
}

// dispatchAction returns a request that dispatches an action over the client API.
func (i *testbed) dispatchAction(ctx context.Context, u account, action string, params map[string]any) ([]byte, error) {
	return apiRequest(ctx, http.MethodPost, i.setup.PublicURL+"/api/activity", u.token, map[string]any{"action": action, "params": params})
}

// sent is the result of several requests, in their order.
type sent struct {
	latencies []time.Duration // from when the request was due to the end of its answer
	statuses  map[int]int
	body      []byte // the last answer
}

// add adds the results of other requests.
func (s *sent) add(other *sent) {
	s.latencies = append(s.latencies, other.latencies...)
	for status, n := range other.statuses {
		s.statuses[status] += n
	}
	if other.body != nil {
		s.body = other.body
	}
}

// countAnswers counts the answers by status. An answer whose status is not equal to want also
// counts as an error.
func (s *sent) countAnswers(into map[string]int, want int) {
	into["errors"] = 0
	for status, n := range s.statuses {
		into[fmt.Sprintf("answered_%d", status)] = n
		if status != want {
			into["errors"] += n
		}
	}
}

// traffic is a series of requests to send, with the number of connections and the rate.
type traffic struct {
	address  string
	requests [][]byte // sent in turn
	n        int
	clients  int
	rate     float64             // requests per second; 0: as fast as answers come
	during   time.Duration       // no request is sent after this time, except the first one of each client; 0: n requests are sent
	progress func(done, all int) // may be nil
}

// sendTraffic sends the requests and waits for every answer. If t.rate is above 0, the latency of
// a request counts from when the request was due, so that an engine that falls behind does not
// look faster than it is.
func sendTraffic(ctx context.Context, t traffic) (*sent, error) {
	conns := make([]*conn, min(t.clients, t.n))
	for k := range conns {
		c, err := dialEngine(ctx, t.address)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		conns[k] = c
	}
	s := &sent{latencies: make([]time.Duration, t.n), statuses: map[int]int{}}
	done := func() {}
	if t.progress != nil {
		done = newCounter(t.n, t.progress)
	}
	parts := make([]sent, len(conns))
	var next atomic.Int64
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for k, c := range conns {
		part := &parts[k]
		part.statuses = map[int]int{}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		g.Go(func() error {
			defer stop()
			for {
				n := int(next.Add(1)) - 1
				if n >= t.n || t.during > 0 && n >= len(conns) && time.Since(began) > t.during { // each client sends one request, however slow this machine is
					return nil
				}
				due := time.Now()
				if t.rate > 0 {
					due = began.Add(time.Duration(float64(n) / t.rate * float64(time.Second)))
					if !pauseFor(ctx, time.Until(due)) {
						return ctx.Err()
					}
				}
				status, body, err := c.sendRequest(t.requests[n%len(t.requests)])
				if err != nil {
					return err
				}
				s.latencies[n] = time.Since(due)
				part.statuses[status]++
				part.body = body
				done()
			}
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	total := 0
	for k := range parts {
		s.add(&parts[k])
	}
	for _, n := range s.statuses {
		total += n
	}
	// Requests are numbered in order, so only the last requests are missing when time ran out.
	s.latencies = s.latencies[:total]
	return s, nil
}

// pauseFor waits for d. It reports false if ctx ended.
func pauseFor(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
