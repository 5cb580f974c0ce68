package transport

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
)

func TestKnocks(t *testing.T) {
	t.Parallel()
	const (
		rfc, rfcEd, cavage = "rfc9421 rsa", "rfc9421 ed25519", "cavage rsa"
	)
	for _, tt := range []struct {
		name    string
		takes   string // the peer accepts only this knock
		refusal int
		known   signature.Dialect
		first   signature.Dialect
		ed25519 bool
		want    []string
		status  int
		learned signature.Dialect // if zero, nothing was learned
	}{
		{name: "an unknown host that takes the first", takes: rfc, refusal: 401, want: []string{rfc}, status: 200, learned: signature.RFC9421},
		{name: "MS-13 an unknown host that takes the second", takes: cavage, refusal: 401, want: []string{rfc, cavage}, status: 200, learned: signature.Cavage},
		{name: "a second knock on 400", takes: cavage, refusal: 400, want: []string{rfc, cavage}, status: 200, learned: signature.Cavage},
		{name: "a second knock on 403", takes: cavage, refusal: 403, want: []string{rfc, cavage}, status: 200, learned: signature.Cavage},
		{name: "MS-13 two knocks at most", takes: "", refusal: 401, want: []string{rfc, cavage}, status: 401},
		{name: "no second knock on 404", takes: "", refusal: 404, want: []string{rfc}, status: 404},
		{name: "no second knock on 410", takes: "", refusal: 410, want: []string{rfc}, status: 410},
		{name: "MS-13 no second knock on 429", takes: "", refusal: 429, want: []string{rfc}, status: 429},
		{name: "MS-13 no second knock on 500", takes: "", refusal: 500, want: []string{rfc}, status: 500},
		{name: "MS-13 no second knock on 503", takes: "", refusal: 503, want: []string{rfc}, status: 503},
		{name: "a known host is asked as it likes", takes: cavage, refusal: 401, known: signature.Cavage, want: []string{cavage}, status: 200},
		{name: "a known host that refuses once", takes: rfc, refusal: 401, known: signature.Cavage, want: []string{cavage, rfc}, status: 200}, // it takes a second refusal: see TestOneRefusalDoesNotReplaceDraftCavage
		{name: "a known host that takes nothing", takes: "", refusal: 401, known: signature.Cavage, want: []string{cavage, rfc}, status: 401},
		{name: "MS-14 cavage first when configured", takes: cavage, refusal: 401, first: signature.Cavage, want: []string{cavage}, status: 200, learned: signature.Cavage},
		{name: "what is known outweighs what is configured", takes: rfc, refusal: 401, known: signature.RFC9421, first: signature.Cavage, want: []string{rfc}, status: 200},
		{name: "MS-11 Ed25519 for who advertises it", takes: rfcEd, refusal: 401, ed25519: true, want: []string{rfcEd}, status: 200, learned: signature.RFC9421},
		{name: "MS-11 Ed25519 whatever is configured", takes: rfcEd, refusal: 401, ed25519: true, first: signature.Cavage, want: []string{rfcEd}, status: 200, learned: signature.RFC9421},
		{name: "Ed25519 refused", takes: cavage, refusal: 401, ed25519: true, want: []string{rfcEd, cavage}, status: 200, learned: signature.Cavage},
		{name: "Ed25519 refused says nothing about RSA", takes: cavage, refusal: 401, ed25519: true, known: signature.RFC9421, want: []string{rfcEd, cavage}, status: 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{"GET", "POST"} {
				p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, s seen) {
					if s.knock != tt.takes {
						w.WriteHeader(tt.refusal)
					}
				})
				cfg := loopback()
				cfg.First = tt.first
				c, m := newClient(t, cfg, closed(""))
				host := p.id("").Host()
				if tt.known != 0 {
					m.known[host] = tt.known
				}
				status := 0
				if method == "GET" {
					res, err := c.Get(context.Background(), Request{URL: p.id("/"), As: testKeys(), Ed25519: tt.ed25519})
					if err != nil {
						t.Fatal(err)
					}
					status = res.Status
				} else {
					a, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys(), Ed25519: tt.ed25519})
					if err != nil {
						t.Fatal(err)
					}
					status = a.Status
				}
				if got := p.knocks(); status != tt.status || !slices.Equal(got, tt.want) {
					t.Errorf("%s: knocks %q end with %d, want %q with %d", method, got, status, tt.want, tt.status)
				}
				learned := tt.learned
				if method == "GET" && tt.known == 0 && len(tt.want) == 1 {
					learned = 0 // an unsigned read would succeed, too, so the client learns nothing about signatures
				}
				switch {
				case learned == 0 && m.learn != 0:
					t.Errorf("%s: learned dialect %d, want nothing", method, m.known[host])
				case learned != 0 && (m.learn != 1 || m.known[host] != learned):
					t.Errorf("%s: learned dialect %d in %d lessons, want %d in one", method, m.known[host], m.learn, learned)
				}
			}
		})
	}
}

// A host reads only draft-cavage. It refuses the first knock for its own reason, such as a block,
// and the second because it cannot read RFC 9421. The operator gets the first refusal.
func TestARefusalInTheKnownDialectCounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		known  signature.Dialect
		first  signature.Dialect
		second int // the peer's answer to RFC 9421
		want   int
	}{
		{"a signature it cannot read", signature.Cavage, 0, http.StatusUnauthorized, http.StatusForbidden},
		{"another answer than to the signature", signature.Cavage, 0, http.StatusGone, http.StatusGone},
		{"nothing is known of the host", 0, signature.Cavage, http.StatusUnauthorized, http.StatusUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, s seen) {
				if s.knock == "cavage rsa" {
					http.Error(w, "blocked", http.StatusForbidden)
					return
				}
				http.Error(w, "no signature", tt.second)
			})
			cfg := loopback()
			cfg.First = tt.first
			c, m := newClient(t, cfg, closed(""))
			if tt.known != 0 {
				m.known[p.id("").Host()] = tt.known
			}
			a, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()})
			if err != nil || a.Status != tt.want || len(p.knocks()) != 2 {
				t.Errorf("Post = %+v, %v after %q, want %d after two knocks", a, err, p.knocks(), tt.want)
			}
			if a.BytesOut != 2*int64(len(note)) || a.Status == http.StatusForbidden && (a.Dialect != signature.Cavage || string(a.Excerpt) != "blocked\n") {
				t.Errorf("Post = %+v, want the bytes of both requests, and of one answer the rest", a)
			}
		})
	}
}

func TestKnocksWithoutEd25519Key(t *testing.T) {
	t.Parallel()
	p := newPeer(t, nil, func(http.ResponseWriter, *http.Request, seen) {})
	c, _ := newClient(t, loopback(), closed(""))
	if _, err := c.Post(context.Background(), Post{Inbox: p.id("/"), Body: []byte(note), As: Keys{RSA: testKeys().RSA}, Ed25519: true}); err != nil {
		t.Fatal(err)
	}
	if got := p.knocks(); !slices.Equal(got, []string{"rfc9421 rsa"}) {
		t.Errorf("knocks = %q, want RSA for want of another key", got)
	}
}

func TestKnocksAgainOnAStrippedActor(t *testing.T) {
	t.Parallel()
	whole := func(r *Response) error {
		if string(r.Body) != "actor with inbox" {
			return errors.New("no inbox")
		}
		return nil
	}
	for _, tt := range []struct {
		name, takes string
		want        int // the number of requests
		found       bool
		learned     signature.Dialect
	}{
		{"MS-14 the other dialect brings the inbox", "cavage rsa", 2, true, signature.Cavage},
		{"no dialect does", "none", 2, false, 0},
		{"the first does, as it might have without a signature", "rfc9421 rsa", 1, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, s seen) {
				if s.knock == tt.takes {
					_, _ = w.Write([]byte("actor with inbox")) // the error does not matter: the test checks the text that arrives
				}
			})
			c, m := newClient(t, loopback(), closed(""))
			_, err := c.Get(context.Background(), Request{URL: p.id("/actor"), As: testKeys(), Check: whole})
			if tt.found == (fault.KindOf(err) == fault.Protocol) {
				t.Errorf("Get = %v", err)
			}
			if len(p.saw()) != tt.want || m.known[p.id("").Host()] != tt.learned {
				t.Errorf("%d requests taught %d, want %d and %d", len(p.saw()), m.known[p.id("").Host()], tt.want, tt.learned)
			}
		})
	}
}

func TestKnocksTwiceAlongAllRedirects(t *testing.T) {
	t.Parallel()
	refuses := func(w http.ResponseWriter, _ *http.Request, _ seen) { w.WriteHeader(http.StatusUnauthorized) }
	end := newPeer(t, nil, refuses)
	p := newPeer(t, nil, func(w http.ResponseWriter, r *http.Request, s seen) {
		if s.knock == "cavage rsa" {
			http.Redirect(w, r, end.URL+"/", http.StatusFound)
			return
		}
		refuses(w, r, s)
	})
	c, _ := newClient(t, loopback(), closed(""))
	res, err := c.Get(context.Background(), Request{URL: p.id("/"), As: testKeys(), Ed25519: true})
	if err != nil || res.Status != http.StatusUnauthorized {
		t.Errorf("Get = %+v, %v", res, err)
	}
	if got := p.knocks(); !slices.Equal(got, []string{"rfc9421 ed25519", "cavage rsa"}) {
		t.Errorf("knocks = %q", got)
	}
	// The second host does not profit from the advertisement of the first. The second knock is
	// used up.
	if got := end.knocks(); !slices.Equal(got, []string{"rfc9421 rsa"}) {
		t.Errorf("knocks at the end = %q, want one", got)
	}
}

// A peer may ask for covered components (RFC 9421 §5.1). That neither weakens a signature nor adds
// knocks.
func TestAChallengeWeakensNoSignature(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, challenge string }{
		{"MS-12 nothing is to be covered", `sig1=()`},
		{"MS-12 only the method", `sig1=("@method");created;keyid="https://us.example/actor#main-key"`},
		{"MS-12 another algorithm", `sig1=("@method" "@target-uri");alg="hmac-sha256"`},
		{"MS-12 malformed", `sig1=(`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, _ seen) {
				w.Header().Set("Accept-Signature", tt.challenge)
				w.WriteHeader(http.StatusUnauthorized)
			})
			c, _ := newClient(t, loopback(), closed(""))
			a, err := c.Post(context.Background(), Post{Inbox: p.id("/inbox"), Body: []byte(note), As: *testKeys()})
			if err != nil || a.Status != http.StatusUnauthorized {
				t.Errorf("Post = %+v, %v", a, err)
			}
			if got := p.knocks(); !slices.Equal(got, []string{"rfc9421 rsa", "cavage rsa"}) {
				t.Errorf("knocks %q, want the usual two, each covering all that must be", got)
			}
		})
	}
}

// BookWyrm answers 200 to a Delete whose signature it cannot read. It answers 401 to any other
// such activity.
func TestWhatTakesSomethingBackKnocksWithDraftCavage(t *testing.T) {
	t.Parallel()
	const rfc, rfcEd, cavage = "rfc9421 rsa", "rfc9421 ed25519", "cavage rsa"
	for _, tt := range []struct {
		name    string
		refuses string // the peer refuses only this knock
		known   signature.Dialect
		first   signature.Dialect
		ed25519 bool
		want    []string
	}{
		{name: "an unknown host", want: []string{cavage}},
		{name: "an unknown host, whatever is configured", first: signature.RFC9421, want: []string{cavage}},
		{name: "an unknown host that refuses draft-cavage", refuses: cavage, want: []string{cavage, rfc}},
		{name: "a host that takes RFC 9421", known: signature.RFC9421, want: []string{rfc}},
		{name: "a host that took RFC 9421 once", known: signature.RFC9421, refuses: rfc, want: []string{rfc, cavage}},
		{name: "a host that advertises Ed25519", ed25519: true, want: []string{rfcEd}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, s seen) {
				if s.knock == tt.refuses {
					w.WriteHeader(http.StatusUnauthorized)
				}
			})
			cfg := loopback()
			cfg.First = tt.first
			c, m := newClient(t, cfg, closed(""))
			if tt.known != 0 {
				m.known[p.id("").Host()] = tt.known
			}
			a, err := c.Post(t.Context(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys(), Ed25519: tt.ed25519, TakesBack: true})
			if err != nil || a.Status != http.StatusOK || !slices.Equal(p.knocks(), tt.want) {
				t.Errorf("Post = %d, %v after the knocks %q, want 200 after %q", a.Status, err, p.knocks(), tt.want)
			}
			if m.learn != 0 {
				t.Errorf("the answer taught %s, want nothing", m.known[p.id("").Host()])
			}
		})
	}
}

// Guppe and Gancio answer 500 to a signature by RFC 9421.
func TestAHostThatFailsAtRFC9421IsAskedInDraftCavageNext(t *testing.T) {
	t.Parallel()
	const rfc, cavage = "rfc9421 rsa", "cavage rsa"
	for _, tt := range []struct {
		name    string
		fails   []string // the knocks that the peer answers with 5xx
		known   signature.Dialect
		first   signature.Dialect
		ask     string
		want    []string
		learned signature.Dialect
	}{
		{name: "a delivery", fails: []string{rfc}, ask: "post post post", want: []string{rfc, cavage, cavage}, learned: signature.Cavage},
		{name: "a delivery after a document", fails: []string{rfc}, ask: "get get post", want: []string{rfc, cavage, cavage}, learned: signature.Cavage},
		{name: "a host that is down", fails: []string{rfc, cavage}, ask: "post post post", want: []string{rfc, cavage, cavage}},
		{name: "a host that is down, with draft-cavage configured", first: signature.Cavage, fails: []string{rfc, cavage}, ask: "post post", want: []string{cavage, cavage}},
		{name: "a host that is asked", fails: []string{rfc}, ask: "ask ask", want: []string{rfc, rfc}},
		{name: "a host that took RFC 9421", known: signature.RFC9421, fails: []string{rfc}, ask: "post post", want: []string{rfc, rfc}, learned: signature.RFC9421},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, s seen) {
				if slices.Contains(tt.fails, s.knock) {
					w.WriteHeader(http.StatusBadGateway)
				}
			})
			cfg := loopback()
			cfg.First = tt.first
			c, m := newClient(t, cfg, closed(""))
			host := p.id("").Host()
			if tt.known != 0 {
				m.known[host] = tt.known
			}
			for how := range strings.FieldsSeq(tt.ask) {
				err := error(nil)
				switch how {
				case "get":
					_, err = c.Get(t.Context(), Request{URL: p.id("/"), As: testKeys()})
				case "ask":
					_, err = c.Ask(t.Context(), Question{Method: http.MethodPost, URL: p.id("/"), Body: []byte(note), As: *testKeys()})
				default:
					_, err = c.Post(t.Context(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if got := p.knocks(); !slices.Equal(got, tt.want) || m.known[host] != tt.learned {
				t.Errorf("knocks %q, and %s is stored; want %q and %s", got, m.known[host], tt.want, tt.learned)
			}
		})
	}
}

func TestDoubtsAreBounded(t *testing.T) {
	t.Parallel()
	var d doubts
	for n := range maxDoubts + 1 {
		d.add(strconv.Itoa(n))
	}
	if len(d.hosts) != 1 || !d.has(strconv.Itoa(maxDoubts)) {
		t.Errorf("%d hosts are held, want the last one", len(d.hosts))
	}
}

// Some hosts answer 2xx before they look at a signature, even if they cannot read it. A firewall
// before such a host may refuse one request in draft-cavage.
func TestOneRefusalDoesNotReplaceDraftCavage(t *testing.T) {
	t.Parallel()
	refuses := 0
	p := newPeer(t, nil, func(w http.ResponseWriter, _ *http.Request, s seen) {
		if s.knock == "cavage rsa" && refuses > 0 {
			refuses--
			w.WriteHeader(http.StatusForbidden)
		}
	})
	c, m := newClient(t, loopback(), closed(""))
	host := p.id("").Host()
	m.known[host] = signature.Cavage
	for n, want := range []signature.Dialect{signature.Cavage, signature.RFC9421} {
		refuses = 1
		if _, err := c.Post(t.Context(), Post{Inbox: p.id("/"), Body: []byte(note), As: *testKeys()}); err != nil {
			t.Fatal(err)
		}
		if m.known[host] != want {
			t.Errorf("after %d refusals the host has dialect %d, want %d", n+1, m.known[host], want)
		}
	}
}
