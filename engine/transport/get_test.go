package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestGetSendsWhatPeersExpect(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) { fmt.Fprint(w, `{}`) })
	c, _ := newClient(t, loopback(), closed(""))
	res, err := c.Get(context.Background(), Request{URL: p.id("/users/bob#main-key"), As: testKeys()})
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != 200 || string(res.Body) != `{}` || res.URL != p.id("/users/bob") || res.Dialect != signature.RFC9421 || res.Redirects != 0 {
		t.Errorf("Get = %+v", res)
	}
	got := p.saw()[0]
	want := map[string]string{ // OB-04: the header of a request for a document
		"Accept":          `application/ld+json; profile="https://www.w3.org/ns/activitystreams", application/activity+json`,
		"Accept-Encoding": "gzip",
		"User-Agent":      "Lightweb/test (+https://us.example)",
	}
	for k, v := range want {
		if got.header.Get(k) != v {
			t.Errorf("%s: %q, want %q", k, got.header.Get(k), v)
		}
	}
	if got.path != "/users/bob" || got.knock != "rfc9421 rsa" || got.header.Get("Date") == "" {
		t.Errorf("the peer saw %+v", got)
	}
}

func TestGetUnsigned(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) { w.WriteHeader(http.StatusUnauthorized) })
	c, m := newClient(t, loopback(), closed(""))
	res, err := c.Get(context.Background(), Request{URL: p.id("/"), Accept: "application/jrd+json"})
	if err != nil || res.Status != http.StatusUnauthorized || res.Dialect != 0 || m.learn != 0 {
		t.Errorf("Get = %+v, %v", res, err)
	}
	if got := p.knocks(); !slices.Equal(got, []string{"unsigned"}) {
		t.Errorf("knocks = %q, want one unsigned", got)
	}
	if got := p.saw()[0].header.Get("Accept"); got != "application/jrd+json" {
		t.Errorf("Accept: %q", got)
	}
}

func TestGetReturnsStatuses(t *testing.T) {
	t.Parallel()
	for _, status := range []int{201, 204, 300, 304, 404, 406, 410, 429, 500, 503} {
		p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) { w.WriteHeader(status) })
		c, _ := newClient(t, loopback(), closed(""))
		res, err := c.Get(context.Background(), Request{URL: p.id("/"), As: testKeys()})
		if err != nil || res.Status != status || res.Body != nil {
			t.Errorf("Get of a %d = %+v, %v", status, res, err)
		}
		if n := len(p.saw()); n != 1 {
			t.Errorf("a %d brought %d requests, want 1", status, n)
		}
	}
}

func TestGetFollowsRedirects(t *testing.T) {
	t.Parallel()
	other := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) { fmt.Fprint(w, "there") })
	p := newPeer(t, nil, func(w http.ResponseWriter, r *http.Request, _ seen) {
		to := map[string]string{
			"/1": "/0", "/2": "/1", "/3": "2", "/4": "/3", "/loop": "/loop", "/ping": "/pong", "/pong": "/ping#again",
			"/frag": "/frag#x", "/away": other.URL + "/x#frag", "/data": "data:,a", "/file": "file:///etc/passwd",
			"/user": "http://u@" + r.Host + "/0", "/private": "http://10.0.0.1/", "/name": "http://127.1/", "/empty": "", "/bad": "http://[::",
			"/dot": "http://blocked.example/",
		}
		if l, ok := to[r.URL.Path]; ok {
			w.Header().Set("Location", l)
			w.WriteHeader([]int{301, 302, 303, 307, 308}[len(r.URL.Path)%5])
		}
	})
	c, m := newClient(t, loopback(), closed("blocked.example"))
	for _, tt := range []struct {
		name, path string
		want       fault.Kind // Internal stands for a redirect that is followed
		end        vocab.ID
		requests   int
	}{
		{name: "one", path: "/1", end: p.id("/0"), requests: 2},
		{name: "three", path: "/3", end: p.id("/0"), requests: 4},
		{name: "NET-07 not four", path: "/4", want: fault.Protocol, requests: 4},
		{name: "NET-10 a loop of one", path: "/loop", want: fault.Protocol, requests: 1},
		{name: "NET-10 a loop of two", path: "/ping", want: fault.Protocol, requests: 2},
		{name: "NET-10 a loop that differs by fragment", path: "/frag", want: fault.Protocol, requests: 1},
		{name: "to another host", path: "/away", end: other.id("/x"), requests: 1},
		{name: "NET-07 to data", path: "/data", want: fault.Protocol, requests: 1},
		{name: "NET-07 to a file", path: "/file", want: fault.Protocol, requests: 1},
		{name: "NET-07 with user info", path: "/user", want: fault.Protocol, requests: 1},
		{name: "NET-07 to a private address", path: "/private", want: fault.Forbidden, requests: 1},
		{name: "NET-06 to an address in disguise", path: "/name", want: fault.Forbidden, requests: 1},
		{name: "MOD-02 to a blocked host", path: "/dot", want: fault.Forbidden, requests: 1},
		{name: "without a location", path: "/empty", want: fault.Protocol, requests: 1},
		{name: "to no URL", path: "/bad", want: fault.Protocol, requests: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(p.saw())
			res, err := c.Get(context.Background(), Request{URL: p.id(tt.path), As: testKeys()})
			if tt.want == fault.Internal {
				if err != nil || res.URL != tt.end || res.Status != 200 {
					t.Errorf("Get = %+v, %v, want 200 from %s", res, err, tt.end)
				}
			} else if fault.KindOf(err) != tt.want {
				t.Errorf("Get = %v, want kind %v", err, tt.want)
			}
			got := p.saw()[before:]
			if len(got) != tt.requests {
				t.Errorf("%d requests, want %d", len(got), tt.requests)
			}
			for _, s := range got {
				if s.knock != "rfc9421 rsa" {
					t.Errorf("%s was asked for %s", s.path, s.knock)
				}
			}
		})
	}
	if s := other.saw()[0]; s.knock != "rfc9421 rsa" || "http://"+s.host != other.URL { // DL-15: the redirect arrives signed anew
		t.Errorf("the other host saw %+v, want a signature of its own", s)
	}
	if m.learn != 0 {
		t.Error("a page that anybody may read taught how its host is signed to")
	}
}

func TestGetNeverGoesFromHTTPSToHTTP(t *testing.T) {
	t.Parallel()
	plain := newPeer(t, nil, func(http.ResponseWriter, *http.Request, seen) {})
	p := newPeer(t, &tls.Config{}, func(w http.ResponseWriter, r *http.Request, _ seen) {
		http.Redirect(w, r, plain.URL+"/x", http.StatusFound)
	})
	c, _ := newClient(t, loopback(), closed(""))
	trust(c, p)
	if _, err := c.Get(context.Background(), Request{URL: p.id("/")}); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("NET-07: Get = %v, want Forbidden", err)
	}
	if _, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()}); err != nil {
		t.Errorf("Post = %v, want the redirect as answer", err)
	}
	if n := len(plain.saw()); n != 0 {
		t.Errorf("plain http saw %d requests", n)
	}
}

// trust makes the client accept the certificate of a test server.
func trust(c *Client, p *peer) {
	for _, pool := range []*http.Transport{c.reads, c.writes} {
		pool.TLSClientConfig.RootCAs = p.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	}
}

func TestGetOverTLS(t *testing.T) {
	t.Parallel()
	ok := func(w http.ResponseWriter, _ *http.Request, _ seen) { fmt.Fprint(w, "ok") }
	p := newPeer(t, &tls.Config{}, ok)
	old := newPeer(t, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, ok)
	t.Run("a trusted certificate", func(t *testing.T) {
		c, _ := newClient(t, loopback(), closed(""))
		trust(c, p)
		res, err := c.Get(context.Background(), Request{URL: p.id("/"), As: testKeys()})
		if err != nil || string(res.Body) != "ok" {
			t.Errorf("Get = %+v, %v", res, err)
		}
	})
	t.Run("NET-17 a certificate of nobody", func(t *testing.T) {
		c, _ := newClient(t, loopback(), closed(""))
		if _, err := c.Get(context.Background(), Request{URL: p.id("/")}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("Get = %v, want Unavailable", err)
		}
	})
	t.Run("NET-17 a certificate of another name", func(t *testing.T) {
		c, _ := newClient(t, loopback(), closed(""))
		trust(c, p)
		names(t, c).Say("peer.example", []netip.Addr{netip.MustParseAddr("127.0.0.1")})
		id := vocab.ID(strings.Replace(p.URL, "127.0.0.1", "peer.example", 1))
		if _, err := c.Get(context.Background(), Request{URL: id}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("Get = %v, want Unavailable", err)
		}
	})
	t.Run("NET-17 TLS 1.1", func(t *testing.T) {
		c, _ := newClient(t, loopback(), closed(""))
		trust(c, old)
		if _, err := c.Get(context.Background(), Request{URL: old.id("/")}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("Get = %v, want Unavailable", err)
		}
	})
}

func packed(t *testing.T, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestGetReadsWithinLimits(t *testing.T) {
	t.Parallel()
	const limit = 1000
	text := bytes.Repeat([]byte("ab"), limit/2)
	send := func(encoding string, body []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
			}
			_, _ = w.Write(body) // the client may have hung up
		}
	}
	endless := func(chunk []byte, encoding string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			for {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	for _, tt := range []struct {
		name string
		h    http.HandlerFunc
		want fault.Kind // Internal stands for a text that is read
	}{
		{name: "a body as long as the limit", h: send("", text)},
		{name: "a body one byte longer", h: send("", append(text, 'c')), want: fault.Protocol},
		{name: "a packed body as long as the limit", h: send("gzip", packed(t, text))},
		{name: "a packed body one byte longer", h: send("gzip", packed(t, append(text, 'c'))), want: fault.Protocol},
		{name: "the other name of gzip", h: send("X-GZIP", packed(t, text))},
		{name: "identity", h: send("identity", text)},
		{name: "NET-15 a bomb", h: send("gzip", packed(t, make([]byte, 10<<20))), want: fault.Protocol},
		{name: "NET-15 a bomb of empty members", h: endless(packed(t, nil), "gzip"), want: fault.Protocol},
		{name: "NET-15 nested encodings", h: send("gzip, gzip", packed(t, packed(t, text))), want: fault.Protocol},
		{name: "NET-15 an encoding nobody asked for", h: send("br", text), want: fault.Protocol},
		{name: "NET-15 deflate", h: send("deflate", text), want: fault.Protocol},
		{name: "not packed at all", h: send("gzip", text), want: fault.Protocol},
		{name: "packed emptiness", h: send("gzip", nil), want: fault.Protocol},
		{name: "packed and cut off", h: send("gzip", packed(t, text)[:20]), want: fault.Unavailable},
		{name: "packed and damaged", h: send("gzip", damaged(packed(t, text))), want: fault.Protocol},
		{name: "NET-16 endless", h: endless(text, ""), want: fault.Protocol},
		{name: "NET-15 a length that lies", h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "900")
			_, _ = w.Write(text[:10]) // the server notices the wrong length and hangs up
		}, want: fault.Unavailable},
		{name: "NET-15 a length over the limit", h: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000000000")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, want: fault.Protocol},
		{name: "NET-16 a million headers", h: func(w http.ResponseWriter, _ *http.Request) {
			for i := range 10_000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), "something to be read")
			}
		}, want: fault.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, nil, func(w http.ResponseWriter, r *http.Request, _ seen) { tt.h(w, r) })
			c, _ := newClient(t, loopback(), closed(""))
			res, err := c.Get(context.Background(), Request{URL: p.id("/"), Limit: limit})
			if tt.want == fault.Internal {
				if err != nil || !bytes.Equal(res.Body, text) {
					t.Errorf("Get = %+v, %v", res, err)
				}
			} else if fault.KindOf(err) != tt.want {
				t.Errorf("Get = %v, want kind %v", err, tt.want)
			}
		})
	}
}

func damaged(b []byte) []byte {
	b = slices.Clone(b)
	b[len(b)-6] ^= 0xff // a byte of the checksum
	return b
}

func TestGetHasOneDeadline(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"NET-16 no header": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"NET-16 a body that stops": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "{")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"a second knock in the same time": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Signature-Input") != "" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			<-r.Context().Done()
		},
		"a redirect in the same time": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/slow", http.StatusFound)
				return
			}
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, nil, func(w http.ResponseWriter, r *http.Request, _ seen) { h(w, r) })
			cfg := loopback()
			cfg.Timeout = 300 * time.Millisecond
			c, _ := newClient(t, cfg, closed(""))
			if _, err := c.Get(context.Background(), Request{URL: p.id("/"), As: testKeys()}); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("Get = %v, want Unavailable", err)
			}
		})
	}
}

func TestGetGivenUpByTheCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	p := newPeer(t, nil, func(_ http.ResponseWriter, r *http.Request, _ seen) { cancel(); <-r.Context().Done() })
	c, _ := newClient(t, loopback(), closed(""))
	if _, err := c.Get(ctx, Request{URL: p.id("/")}); fault.KindOf(err) != fault.Busy || !errors.Is(err, context.Canceled) {
		t.Errorf("Get = %v, want Busy", err)
	}
}

// A caller gives up while its request waits for its signature. The error does not blame the peer.
func TestWaitingToSignCanBeGivenUp(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(http.ResponseWriter, *http.Request, seen) {})
	c, _ := newClient(t, loopback(), closed(""))
	for range cap(c.signing) {
		c.signing <- struct{}{}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	late, end := context.WithDeadline(t.Context(), time.Time{})
	defer end()
	for ctx, want := range map[context.Context]fault.Kind{gone: fault.Busy, late: fault.Unavailable} {
		if _, err := c.Get(ctx, Request{URL: p.id("/"), As: testKeys()}); fault.KindOf(err) != want || !fault.IsOurs(err) {
			t.Errorf("Get = %v, want %v, and not by the peer", err, want)
		}
	}
}

func TestGetAsksTheGate(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(http.ResponseWriter, *http.Request, seen) {})
	c, _ := newClient(t, loopback(), closed(p.id("").Host()))
	if _, err := c.Get(context.Background(), Request{URL: p.id("/")}); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("Get = %v, want Forbidden", err)
	}
	if _, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()}); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("Post = %v, want Forbidden", err)
	}
	if len(p.saw()) != 0 {
		t.Error("a blocked host was contacted")
	}
}

func TestNobodyIsContactedWhileFederationIsPaused(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(http.ResponseWriter, *http.Request, seen) {})
	cfg := loopback()
	cfg.Paused = true
	c, _ := newClient(t, cfg, closed(""))
	if _, err := c.Get(context.Background(), Request{URL: p.id("/")}); !errors.Is(err, ErrPaused) {
		t.Errorf("Get = %v, want ErrPaused", err)
	}
	if _, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()}); !errors.Is(err, ErrPaused) {
		t.Errorf("Post = %v, want ErrPaused", err)
	}
	if len(p.saw()) != 0 {
		t.Error("somebody was contacted")
	}
}

func TestGetOfNobody(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(http.ResponseWriter, *http.Request, seen) {})
	p.Close()
	c, _ := newClient(t, loopback(), closed(""))
	if _, err := c.Get(context.Background(), Request{URL: p.id("/")}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("Get = %v, want Unavailable", err)
	}
}
