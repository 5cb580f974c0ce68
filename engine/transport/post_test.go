package transport

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
)

const note = `{"type":"Create"}`

func TestPostSendsWhatPeersExpect(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) { w.WriteHeader(http.StatusAccepted) })
	c, _ := newClient(t, loopback(), closed(""))
	a, err := c.Post(context.Background(), Post{Inbox: p.id("/inbox"), Body: []byte(note), As: *testKeys(), IdempotencyKey: "k1"})
	if err != nil || a.Status != 202 || a.Dialect != signature.RFC9421 || a.BytesOut != int64(len(note)) || a.Excerpt != nil {
		t.Errorf("Post = %+v, %v", a, err)
	}
	got := p.saw()[0]
	if got.method != "POST" || got.path != "/inbox" || got.body != note || got.knock != "rfc9421 rsa" {
		t.Errorf("the peer saw %+v", got)
	}
	for k, v := range map[string]string{ // DL-01: the header of a delivery
		"Content-Type":    `application/ld+json; profile="https://www.w3.org/ns/activitystreams"`,
		"Idempotency-Key": "k1",
		"User-Agent":      "Lightweb/test (+https://us.example)",
		"Content-Length":  fmt.Sprint(len(note)),
	} {
		if got.header.Get(k) != v {
			t.Errorf("%s: %q, want %q", k, got.header.Get(k), v)
		}
	}
}

// FE-08: in both dialects the signature covers the Collection-Synchronization field.
func TestPostSignsWhatItSaysOfFollowers(t *testing.T) {
	t.Parallel()
	const said = `collectionId="https://us.example/f", url="https://us.example/s", digest="00"`
	var covered []bool
	p := newPeer(t, nil, func(w http.ResponseWriter, r *http.Request, s seen) {
		got, err := signature.Parse(r, []byte(s.body), signature.Options{Origin: "http://" + r.Host, Now: time.Now()})
		if err != nil || r.Header.Get("Collection-Synchronization") != said {
			t.Errorf("the peer got %v, %v", r.Header, err)
			return
		}
		covered = append(covered, slices.Contains(got[0].Covered, "collection-synchronization"))
		if got[0].Dialect == signature.RFC9421 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	c, _ := newClient(t, loopback(), closed(""))
	a, err := c.Post(context.Background(), Post{Inbox: p.id("/inbox"), Body: []byte(note), As: *testKeys(), Synchronization: said})
	if err != nil || a.Status != 202 || !slices.Equal(covered, []bool{true, true}) || !slices.Equal(p.knocks(), []string{"rfc9421 rsa", "cavage rsa"}) {
		t.Errorf("Post = %+v, %v: covered %v in %q", a, err, covered, p.knocks())
	}
}

// Each attempt sends the stored bytes with a new signature and the attempt's own time. So a retry
// after half a day is not refused as a replay.
func TestEveryAttemptIsSignedAnew(t *testing.T) {
	t.Parallel()
	const body = `{ "type":"Create",  "id":"https:\/\/us.example\/1" }`
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, d := range []signature.Dialect{signature.RFC9421, signature.Cavage} {
		t.Run("DL-14 "+d.String(), func(t *testing.T) {
			var claims []signature.Claim
			p := newPeer(t, nil, func(w http.ResponseWriter, r *http.Request, s seen) {
				got, err := signature.Parse(r, []byte(s.body), signature.Options{Origin: "http://" + r.Host, Now: now})
				if err != nil || s.body != body || got[0].Verify(testKeys().RSA.Private.Public()) != nil {
					t.Errorf("the peer got %q, %v", s.body, err)
				}
				claims = append(claims, got...)
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			cfg := loopback()
			cfg.First, cfg.Now = d, func() time.Time { return now }
			c, _ := newClient(t, cfg, closed(""))
			for range 2 {
				if _, err := c.Post(context.Background(), Post{Inbox: p.id("/inbox"), Body: []byte(body), As: *testKeys()}); err != nil {
					t.Fatal(err)
				}
				now = now.Add(13 * time.Hour)
			}
			if len(claims) != 2 || claims[1].Created.Sub(claims[0].Created) != 13*time.Hour {
				t.Errorf("signed %+v, want twice, 13 hours apart", claims)
			}
		})
	}
}

func TestPostKeepsAnExcerptOfEveryAnswer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct {
		name    string
		status  int
		body    string
		excerpt string
	}{
		{"a success", 202, "thanks", "thanks"},
		{"a success without a body", 202, "", ""},
		{"a long success", 200, long, long[:1024]},
		{"a short refusal", 404, "no such inbox", "no such inbox"},
		{"a long refusal", 500, long, long[:1024]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			c, _ := newClient(t, loopback(), closed(""))
			a, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()})
			if err != nil || a.Status != tt.status || string(a.Excerpt) != tt.excerpt {
				t.Errorf("Post = %+v, %v, want %d %q", a, err, tt.status, tt.excerpt)
			}
			if a.BytesIn < int64(len(tt.excerpt)) || a.BytesIn > maxExcerpt+maxDrain {
				t.Errorf("%d bytes were read", a.BytesIn)
			}
		})
	}
}

// Post keeps only some fields of an answer's header, from a fixed list. Each has a bounded length.
func TestPostKeepsWhatHelpsOfTheHeader(t *testing.T) {
	t.Parallel()
	secret := map[string]string{"Set-Cookie": "session=secret", "Set-Cookie2": "secret", "Authentication-Info": "secret", "Proxy-Authenticate": "secret",
		"X-Auth-Token": "secret", "X-Invented": "secret", "Location": "/made?token=secret"}
	for _, status := range []int{202, 401, 503} {
		p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) {
			for name, value := range secret {
				w.Header().Set(name, value)
			}
			w.Header().Set("Server", "Example/1.0")
			w.Header().Add("Via", "1.1 one")
			w.Header().Add("Via", "1.1 two")
			w.Header().Set("X-Request-Id", strings.Repeat("x", 10_000))
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Date", "Thu, 01 Jan 2026 12:00:00 GMT")
			w.WriteHeader(status)
		})
		c, _ := newClient(t, loopback(), closed(""))
		a, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()})
		want := "Content-Type: text/plain\nServer: Example/1.0\nVia: 1.1 one\nVia: 1.1 two\nX-Request-Id: " + strings.Repeat("x", 200) + "\nDate: Thu, 01 Jan 2026 12:00:00 GMT\n"
		if err != nil || a.Status != status || a.Headers != want {
			t.Errorf("of the answer %d, %v, this is kept:\n%s\nwant\n%s", a.Status, err, a.Headers, want)
		}
	}
}

func TestWhatIsKeptOfAHeaderIsBounded(t *testing.T) {
	h := http.Header{}
	for _, name := range kept {
		for range 100 {
			h.Add(name, strings.Repeat("x", 1000))
		}
	}
	if n := len(keptHeaders(h)); n == 0 || n > maxHeaders {
		t.Errorf("%d bytes are kept, want at most %d", n, maxHeaders)
	}
}

func TestPostDoesNotReadEndlessAnswers(t *testing.T) {
	t.Parallel()
	for _, status := range []int{202, 500} {
		p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) {
			w.WriteHeader(status)
			for {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1000)); err != nil {
					return
				}
			}
		})
		c, _ := newClient(t, loopback(), closed(""))
		a, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()})
		if err != nil || a.Status != status {
			t.Errorf("NET-16: Post = %+v, %v, want %d", a, err, status)
		}
	}
}

func TestPostIsDoneWhenTheAnswerStalls(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(w http.ResponseWriter, r *http.Request, _ seen) {
		w.WriteHeader(http.StatusAccepted)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	cfg := loopback()
	cfg.Timeout = 300 * time.Millisecond
	c, _ := newClient(t, cfg, closed(""))
	a, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()})
	if err != nil || a.Status != http.StatusAccepted {
		t.Errorf("NET-16: Post = %+v, %v, want 202", a, err)
	}
}

func TestPostRedirects(t *testing.T) {
	t.Parallel()
	other := newPeer(t, nil, func(http.ResponseWriter, *http.Request, seen) {})
	for _, tt := range []struct {
		name     string
		status   int
		location string
		want     int
		requests int
	}{
		{"DL-15 308 on the host", 308, "/new", 202, 2},
		{"DL-15 307 on the host", 307, "/new", 202, 2},
		{"DL-15 once only", 308, "/old2", 308, 2},
		{"301 would lose the method", 301, "/new", 301, 1},
		{"302 would lose the method", 302, "/new", 302, 1},
		{"303 would lose the method", 303, "/new", 303, 1},
		{"DL-15 not to another host", 308, other.URL + "/new", 308, 1},
		{"NET-07 not to a private address", 308, "http://10.0.0.1/", 308, 1},
		{"to no URL", 308, "http://[::", 308, 1},
		{"to nowhere", 308, "", 308, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t, nil, func(w http.ResponseWriter, r *http.Request, s seen) {
				if s.body != note || s.knock != "rfc9421 rsa" { // the signature covers the URL at which the request arrived
					t.Errorf("%s got the body %q, signed %q", s.path, s.body, s.knock)
				}
				switch r.URL.Path {
				case "/old":
					w.Header().Set("Location", tt.location)
					w.WriteHeader(tt.status)
				case "/old2":
					w.Header().Set("Location", "/new")
					w.WriteHeader(tt.status)
				default:
					w.WriteHeader(http.StatusAccepted)
				}
			})
			c, _ := newClient(t, loopback(), closed(""))
			a, err := c.Post(context.Background(), Post{Inbox: p.id("/old"), Body: []byte(note), As: *testKeys()})
			if err != nil || a.Status != tt.want || len(p.saw()) != tt.requests {
				t.Errorf("Post = %+v, %v after %d requests, want %d after %d", a, err, len(p.saw()), tt.want, tt.requests)
			}
			if tt.requests == 1 && strings.HasPrefix(tt.location, other.URL) && a.Location != tt.location {
				t.Errorf("Location = %q, want %q", a.Location, tt.location)
			}
		})
	}
	if len(other.saw()) != 0 {
		t.Error("the other host was contacted")
	}
}

func TestPostWithoutAnswer(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(w http.ResponseWriter, r *http.Request, s seen) {
		if s.knock == "rfc9421 rsa" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		panic(http.ErrAbortHandler)
	})
	c, _ := newClient(t, loopback(), closed(""))
	a, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()})
	if fault.KindOf(err) != fault.Unavailable || a.Status != 0 || a.Dialect != signature.Cavage {
		t.Errorf("Post = %+v, %v, want Unavailable", a, err)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		field string
		want  time.Duration
	}{
		{"", 0},
		{"0", 0},
		{"120", 2 * time.Minute},
		{"-5", 0},
		{"1.5", 0},
		{"soon", 0},
		{"86400", 24 * time.Hour},
		{"86401", 24 * time.Hour},
		{"9223372036854775807", 24 * time.Hour},
		{"99999999999999999999999", 24 * time.Hour},
		{"Sun, 01 Nov 2026 12:01:00 GMT", time.Minute},
		{"Sun, 01 Nov 2026 11:00:00 GMT", 0},
		{"Sun, 01 Nov 2099 11:00:00 GMT", 24 * time.Hour},
	} {
		if got := retryAfter(tt.field, now); got != tt.want {
			t.Errorf("retryAfter(%q) = %v, want %v", tt.field, got, tt.want)
		}
	}
}

func TestPostReportsRetryAfter(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) {
		w.Header().Set("Retry-After", "90")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	c, _ := newClient(t, loopback(), closed(""))
	a, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()})
	if err != nil || a.Status != 429 || a.RetryAfter != 90*time.Second || len(p.saw()) != 1 {
		t.Errorf("Post = %+v, %v after %d requests", a, err, len(p.saw()))
	}
}

func TestPostAndGetDoNotShareConnections(t *testing.T) {
	t.Parallel()
	fetched := make(chan struct{})
	p := newPeer(t, nil, func(_ http.ResponseWriter, r *http.Request, s seen) {
		if s.method == "POST" {
			select {
			case <-fetched: // before it answers, a peer may fetch a key from us
			case <-r.Context().Done():
			}
		}
	})
	cfg := loopback()
	cfg.HostConns = 1
	c, _ := newClient(t, cfg, closed(""))
	posted := make(chan error, 1)
	go func() {
		_, err := c.Post(context.Background(), Post{Inbox: p.id("/inbox"), Body: []byte(note), As: *testKeys()})
		posted <- err
	}()
	if _, err := c.Get(context.Background(), Request{URL: p.id("/actor")}); err != nil {
		t.Errorf("Get = %v while a Post waits", err)
	}
	close(fetched)
	if err := <-posted; err != nil {
		t.Errorf("Post = %v", err)
	}
}
