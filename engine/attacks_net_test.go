package engine_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The engine may contact two loopback addresses only: those of mallory's and carol's servers.
const (
	someAddresses = "LIGHTWEB_FEDERATION_ALLOW_ADDRESSES=127.0.0.2/32,127.0.0.3/32"
	fetchTime     = 5 * time.Second
	manyKeys      = 200 // how many keys of one domain are fetched at once
)

func TestAttacksOnFetching(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	home := enginetest.Make(t, someAddresses, "LIGHTWEB_DELIVERY_TIMEOUT="+fetchTime.String(), fmt.Sprintf("LIGHTWEB_LIMITS_KEY_FETCH_RATE=20/min burst %d", manyKeys), "SSL_CERT_FILE="+a.file)
	names := home.Names(t)
	home.Start(t)
	s := besiege(t, home)
	s.authority, s.names = a, names
	s.play(fetchAttacks)
}

// authority signs certificates that the engine trusts.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key, file: filepath.Join(enginetest.Dir(t), "authority.pem")}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour)}
	signed := a.sign(t, a.cert, key)
	if err := os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o644); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) sign(t testing.TB, cert *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	signed, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// certify returns the configuration of a server with a certificate for an address. It calls
// change() with the certificate before it signs the certificate.
func (a *authority) certify(t testing.TB, address string, change func(*x509.Certificate)) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.ParseIP(address)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(time.Hour)}
	change(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{a.sign(t, cert, key)}, PrivateKey: key}}}
}

// wall listens at an address that the engine may not connect to. It returns the port. If the
// engine connects, the attack fails the test.
func (s *siege) wall(address string) (port string) {
	s.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		s.Skip("this machine has no such address: ", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return // the listener was closed
			}
			s.Errorf("the engine connected to %s", conn.LocalAddr())
			_ = conn.Close() // nothing was sent over the connection
		}
	}()
	s.Cleanup(func() { _ = l.Close(); <-done }) // the error of Close does not matter: nothing was sent
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	return port
}

// boost lets mallory announce an object. The engine then fetches the object from the object's
// server.
func (s *siege) boost(object string) enginetest.Answer {
	s.Helper()
	return s.post(s.mallory, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(s.mallory, "boost-"+url.QueryEscape(object)), "type": "Announce",
		"actor": string(s.mallory.ID), "object": object, "to": []any{s.alice.ID}})
}

// claim sends a Like. The engine has to fetch the document and key of the Like's actor.
func (s *siege) claim(inbox, actor string, d signature.Dialect) enginetest.Answer {
	s.Helper()
	body := vocab.Doc{"id": actor + "/like", "type": "Like", "actor": actor, "object": s.note}
	return s.forge(peertest.Forgery{URL: inbox, Dialect: d, Body: string(body.JSON()), Params: keyed(d, actor+"#main-key")})
}

// redirect lets mallory's server answer path with a redirect. It returns the address of path.
func (s *siege) redirect(path, to string) (from string) {
	s.p.Handle(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	})
	return s.p.Origin + path
}

// finger lets mallory's server answer every WebFinger query with the same actor.
func (s *siege) finger(actor string) {
	s.p.Handle("/.well-known/webfinger", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/jrd+json")
		doc := vocab.Doc{"subject": r.URL.Query().Get("resource"), "links": []any{vocab.Doc{"rel": "self", "type": vocab.ActivityJSON, "href": actor}}}
		_, _ = w.Write(doc.JSON()) // the engine may have hung up
	})
}

// host returns the host and port of an id.
func host(id string) string { return vocab.ID(id).Host() }

// port returns the port of mallory's server.
func (s *siege) port() string { return s.p.Origin[strings.LastIndexByte(s.p.Origin, ':')+1:] }

// asksOfLead is how often one call of lead makes the engine ask mallory's server.
const asksOfLead = 4

// lead lets strangers and alice name an address in every possible way. It checks that the engine
// refuses each. A 503 would mean that the engine tried to connect.
func (s *siege) lead(to string) {
	s.Helper()
	at := func(way string) string { return fmt.Sprintf("%s/%s-%s", to, strings.ToLower(s.row.id), way) }
	path := "/leads/" + url.PathEscape(at("path"))
	for _, d := range dialects {
		s.answered(s.claim("", at(d.String()), d), 400, 401)
	}
	s.answered(s.boost(at("boost")), 202, 400)
	s.answered(s.boost(s.redirect(path, at("moved"))), 202)
	s.answered(s.claim("", s.redirect(path+"-key", at("key")), signature.RFC9421), 401)
	s.answered(s.post(s.mallory, s.alice.ID+"/inbox", vocab.Doc{"id": s.id(s.mallory, "move"+url.QueryEscape(to)), "type": "Move", "actor": string(s.mallory.ID),
		"object": string(s.mallory.ID), "target": at("target"), "to": []any{s.alice.ID}}), 202, 400)
	s.finger(at("finger"))
	for action, params := range map[string]map[string]any{
		"Follow":      {"actorUri": at("follow")},
		"SendMessage": {"recipientUri": "@" + s.row.id + "@" + host(to), "content": "hello"},
		"Block":       {"actorUri": fmt.Sprintf("@%s%x@%s", s.row.id, len(s.p.Asked()), host(s.p.Origin))},
		"Like":        {"objectId": at("object")},
	} {
		s.answered(s.alice.Try(s, action, params), 403, 422)
	}
}

// served returns a public note of mallory's at a path of her server.
func (s *siege) served(path string) vocab.Doc {
	return vocab.Doc{"@context": vocab.ContextAS, "id": s.p.Origin + path, "type": "Note", "attributedTo": string(s.mallory.ID), "content": "served", "to": string(vocab.Public)}
}

// show lets h answer path on mallory's server. It returns the address of path.
func (s *siege) show(path string, h http.HandlerFunc) string {
	s.p.Handle(path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", vocab.ActivityJSON)
		h(w, r)
	})
	return s.p.Origin + path
}

// stream returns a handler that writes until the reader hangs up. It counts the bytes that it
// writes.
func stream(taken *atomic.Int64, part []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			n, err := w.Write(part)
			taken.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
}

// trickle writes a byte at a time until the reader hangs up.
func trickle(w io.Writer) (err error) {
	for range time.Tick(50 * time.Millisecond) {
		if _, err = io.WriteString(w, "x"); err != nil {
			break
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
	return err
}

// hijacked returns a handler that calls write() with the raw connection. Afterwards the connection
// stays open until the engine closes it.
func hijacked(s *siege, write func(io.Writer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			s.Error(err)
			return
		}
		defer conn.Close()
		if write(conn) == nil {
			_, _ = io.Copy(io.Discard, conn) // until the engine closes the connection
		}
	}
}

// packed compresses a text with gzip.
func packed(s *siege, text []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		s.Fatal(err)
	}
	if err := z.Close(); err != nil {
		s.Fatal(err)
	}
	return b.Bytes()
}

// unchanged checks that do() changes no database.
func (s *siege) unchanged(do func()) {
	s.Helper()
	s.settle()
	before := s.state()
	do()
	s.settle()
	if after := s.state(); after != before {
		s.Errorf("it left traces:\n%s", difference(before, after))
	}
}

// say sets the addresses for a name. The engine's name server gives one element of turns in each
// answer.
func (s *siege) say(name string, turns ...[]netip.Addr) {
	s.Helper()
	if s.names == nil {
		enginetest.Skip(s, "names can only be made up by root, on Linux")
	}
	s.names.Say(name, turns...)
}

func addresses(all ...string) (addrs []netip.Addr) {
	for _, a := range all {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs
}

var fetchAttacks = []attack{
	{id: "NET-00", sends: "a request without any proof, whose key lies anywhere", happens: "401: one document is asked for, by the instance actor and not by a user, and nothing of it is shown", asks: 2, play: func(s *siege) {
		var signed atomic.Value
		id := s.show("/net-00", func(w http.ResponseWriter, r *http.Request) {
			signed.Store(r.Header.Get("Signature-Input") + r.Header.Get("Signature"))
			_, _ = io.WriteString(w, `{"secret":"of another server"}`) // the engine may have hung up
		})
		a := s.claim("", id, signature.RFC9421)
		s.unauthorized(a)
		if strings.Contains(string(a.Body), "secret") {
			s.Errorf("the answer shows what was fetched: %s", a.Body)
		}
		if by, _ := signed.Load().(string); !strings.Contains(by, `"`+s.home.URL+`/actor#main-key"`) {
			s.Errorf("the request was signed by %q, want the instance actor", by)
		}
	}},
	{id: "NET-01", sends: "keys, actors, objects, redirects, targets of a Move, handles and WebFinger answers at loopback, private and link-local addresses", happens: "401, 403, 422, or dropped: no connection is made", asks: 8 * asksOfLead, play: func(s *siege) {
		for _, at := range []string{"127.0.0.1:" + s.wall("127.0.0.1:0"), "127.0.0.9:" + s.wall("127.0.0.9:0"), "10.0.0.1", "172.16.0.1", "192.168.0.1:8080", "169.254.169.254", "100.64.0.1", "127.255.255.254"} {
			s.lead("http://" + at)
		}
	}},
	{id: "NET-02", sends: "the same at 0.0.0.0 and 255.255.255.255", happens: "the same", asks: 3 * asksOfLead, play: func(s *siege) {
		for _, at := range []string{"0.0.0.0:" + s.wall("127.0.0.1:0"), "0.0.0.9", "255.255.255.255"} {
			s.lead("http://" + at)
		}
	}},
	{id: "NET-03", sends: "the same at [::]", happens: "the same", asks: 2 * asksOfLead, play: func(s *siege) {
		for _, at := range []string{"[::]:" + s.wall("[::1]:0"), "[0:0:0:0:0:0:0:0]"} {
			s.lead("http://" + at)
		}
	}},
	{id: "NET-04", sends: "the same at IPv6 addresses that hold IPv4 addresses, or are local", happens: "the same", asks: 13 * asksOfLead, play: func(s *siege) {
		port := s.wall("127.0.0.1:0")
		for _, at := range []string{"[::ffff:127.0.0.1]:" + port, "[::ffff:7f00:1]:" + port, "[::1]:" + s.wall("[::1]:0"), "[::7f00:1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]",
			"[2001:0:7f00:1::1]", "[fc00::1]", "[fe80::1]", "[fec0::1]", "[ff02::1]", "[2001:db8::1]"} {
			s.lead("http://" + at)
		}
	}},
	{id: "NET-05", sends: "the same at addresses for tests, documentation, multicast and nobody", happens: "the same", asks: 9 * asksOfLead, play: func(s *siege) {
		for _, at := range []string{"198.18.0.1", "198.19.255.255", "192.0.0.8", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "240.0.0.1"} {
			s.lead("http://" + at)
		}
	}},
	{id: "NET-06", sends: "localhost, names below .internal and .local, single labels, addresses in decimal, octal and hexadecimal, other ports, plain http", happens: "401 and 403: unless the operator allows addresses no such name is even looked up", asks: 4 * asksOfLead,
		play: func(s *siege) {
			port := s.wall("127.0.0.1:0")
			for _, at := range []string{"2130706433", "0177.0.0.1", "0x7f000001", "127.1"} {
				s.lead("http://" + at + ":" + port)
			}
			strict := enginetest.Make(s, "LIGHTWEB_FEDERATION_ALLOW_ADDRESSES=", "LIGHTWEB_FEDERATION_ALLOW_HTTP=false")
			names := strict.Names(s)
			strict.Start(s)
			user := strict.CreateUser(s, "strict")
			for _, to := range []string{"https://localhost", "https://a.localhost", "https://foo.internal", "https://FOO.Internal", "https://printer.local", "https://nas.home.arpa", "https://redis",
				"https://2130706433", "https://0177.1", "https://0x7f.0.0.0x1", "https://127.1", "https://127.0.0.1", "https://[::1]", "https://8.8.8.8", "https://[2606:4700::1111]",
				"https://peer.example:8443", "https://peer.example:22", "http://peer.example"} {
				s.unauthorized(s.claim(strict.URL+"/inbox", to+"/users/nobody", signature.Cavage))
				s.answered(user.Try(s, "Follow", map[string]any{"actorUri": to + "/users/somebody"}), 403)
				name, _, _ := strings.Cut(host(to), ":")
				if names != nil && names.Asked(name) > 0 {
					s.Errorf("%s was looked up", to)
				}
			}
			for _, to := range []string{"https://localhost.", "https://peer.example.", "https://peer..example", "https://user@peer.example"} {
				s.answered(s.claim(strict.URL+"/inbox", to+"/users/nobody", signature.Cavage), 401, 403)
			}
		}},
	{id: "NET-07", sends: "redirects to where nobody may be led, with user info, to other schemes, from https to http, and four in a row", happens: "401, or dropped: each hop is judged as the first, three are followed, and none to another server", asks: 2*11 + 2 + 4, play: func(s *siege) {
		honest := s.p.Origin + "/net-07"
		s.p.Serve("/net-07", s.served("/net-07").JSON())
		at := strings.TrimPrefix(s.p.Origin, "http://")
		for n, to := range []string{"http://127.0.0.9:" + s.wall("127.0.0.9:0") + "/", "http://10.0.0.1/", "data:application/activity+json,{}", "file:///etc/passwd", "gopher://" + at + "/net-07", "ftp://" + at + "/net-07",
			"http://user:word@" + at + "/net-07", "//user@" + at + "/net-07", "http://[::ffff:10.0.0.1]/", "", "http://127.0.0.2%00.example/"} {
			path := fmt.Sprint("/net-07-", n)
			s.accepted(s.boost(s.redirect(path, to)))
			s.unauthorized(s.claim("", s.redirect(path+"-key", to), signature.RFC9421))
		}
		secure := peertest.NewTLS(s, "127.0.0.2", s.authority.certify(s, "127.0.0.2", func(*x509.Certificate) {}))
		secure.Handle("/down", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, honest, http.StatusFound) })
		s.accepted(s.boost(secure.Origin + "/down"))
		s.accepted(s.boost(s.redirect("/net-07-up", secure.Origin+"/down")))
		if n := len(secure.Asked()); n != 1 {
			s.Errorf("the server with TLS was asked %d times, want once: nobody is led there from another server", n)
		}
		for n := range 4 {
			s.redirect(fmt.Sprint("/net-07-hop", n), fmt.Sprint(s.p.Origin, "/net-07-hop", n+1))
		}
		s.p.Serve("/net-07-hop4", s.served("/net-07-hop0").JSON())
		s.accepted(s.boost(s.p.Origin + "/net-07-hop0"))
	}},
	{id: "NET-08", sends: "a name whose address changes from one lookup to the next", happens: "401: what is dialed is what was judged, in one lookup; an address that is not allowed is not connected to", asks: 3, play: func(s *siege) {
		s.wall("127.0.0.9:" + s.port())
		for name, turns := range map[string][][]netip.Addr{
			"turns.example":    {addresses("127.0.0.2"), addresses("127.0.0.9")},
			"again.example":    {addresses("127.0.0.2"), addresses("127.0.0.9"), addresses("127.0.0.2")},
			"private.example":  {addresses("127.0.0.9")},
			"mapped.example":   {addresses("::ffff:127.0.0.9")},
			"metadata.example": {addresses("169.254.169.254")},
		} {
			s.say(name, turns...)
			for n := range 3 {
				path := fmt.Sprintf("/net-08/%s/%d", name, n)
				s.p.Handle(path, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Connection", "close")
					w.WriteHeader(http.StatusNotFound)
				})
				s.unauthorized(s.claim("", "http://"+name+":"+s.port()+path, signature.RFC9421))
			}
			if n := s.names.Asked(name); n != 3 {
				s.Errorf("%s was looked up %d times for three requests", name, n)
			}
		}
	}},
	{id: "NET-09", sends: "a name with addresses of both kinds", happens: "only the one that passes is connected to", asks: 2, play: func(s *siege) {
		s.wall("127.0.0.9:" + s.port())
		s.say("both.example", addresses("127.0.0.9", "127.0.0.2"))
		s.say("both.internal", addresses("127.0.0.2", "127.0.0.9"))
		before := len(s.p.Asked())
		for _, name := range []string{"both.example", "both.internal"} {
			s.unauthorized(s.claim("", "http://"+name+":"+s.port()+"/net-09", signature.RFC9421))
		}
		if n := len(s.p.Asked()) - before; n != 2 {
			s.Errorf("the server was asked %d times, want 2: one of its addresses passes", n)
		}
	}},
	{id: "NET-10", sends: "a WebFinger that redirects in a circle, or to where nobody may be led", happens: "403 and 422: a circle ends where it closes", asks: 5, play: func(s *siege) {
		at := "/.well-known/webfinger"
		for _, to := range []string{at + "?resource=acct:circle", "http://127.0.0.9:" + s.wall("127.0.0.9:0") + at, "http://169.254.169.254/latest/meta-data"} {
			s.redirect(at, to)
			a := s.alice.Try(s, "Follow", map[string]any{"actorUri": fmt.Sprintf("@net-10-%x@%s", len(to), host(s.p.Origin))})
			s.answered(a, 403, 422)
		}
	}},
	{id: "NET-11", sends: "a NodeInfo that links to a private address", never: "this server does not ask others for their NodeInfo"},
	{id: "NET-11b", sends: "a post to a follower whose inbox lies where the engine may not connect to", happens: "it is not sent: deliveries go through the same door", changes: true, play: func(s *siege) {
		s.home.Stop(s)
		s.home.Set("LIGHTWEB_FEDERATION_ALLOW_ADDRESSES=127.0.0.2/32")
		s.home.Start(s)
		create, _ := s.alice.Post(s, map[string]any{"content": "for followers", "visibility": "followers"})
		s.settle()
		if got := s.alice.Column(s, `SELECT d.status FROM deliveries d JOIN delivery_jobs j ON j.id = d.job_id WHERE j.activity_uri = $1`, create); len(got) != 1 || got[0] != "skipped" {
			s.Errorf("the delivery is %q, want skipped", got)
		}
		s.home.Stop(s)
		s.home.Set(someAddresses)
		s.home.Start(s)
	}},
	{id: "NET-12", sends: "actors whose inbox, shared inbox or collections lie on this server, on somebody else's, or at a private address", happens: "401: an actor's own server has them all", asks: 2 * 8, play: func(s *siege) {
		for n, at := range []string{s.alice.ID + "/inbox", s.q.Origin + "/users/carol/inbox", "http://10.0.0.1/inbox", "http://127.0.0.9:" + s.wall("127.0.0.9:0") + "/inbox"} {
			answer, _ := s.impostor(fmt.Sprint("inbox", n), nil, func(a *peertest.Actor) { a.Doc["inbox"] = at })
			s.unauthorized(answer)
			answer, _ = s.impostor(fmt.Sprint("shared", n), nil, func(a *peertest.Actor) { a.Doc["endpoints"] = vocab.Doc{"sharedInbox": at} })
			s.unauthorized(answer)
		}
	}},
	{id: "NET-13", sends: "parameters for a proxy of media and previews", never: "nothing of other servers is passed through or previewed"},
	{id: "NET-14", sends: "Collection-Synchronization headers that name another actor's collection, lead to another server, or are not signed", happens: "202: they are not looked at, and nobody is asked", changes: true, play: func(s *siege) {
		says := func(collection, url string) func(*http.Request) {
			return func(r *http.Request) {
				r.Header.Set("Collection-Synchronization", `collectionId="`+collection+`", url="`+url+`", digest="`+strings.Repeat("0f", 32)+`"`)
			}
		}
		const covered = "(request-target) host date digest collection-synchronization"
		hers, list := string(s.carol.ID)+"/followers", "/users/carol/list"
		lie := func(n int) peertest.Forgery {
			return peertest.Forgery{Key: s.carol.Keys.RSA, Body: string(s.like(s.carol, fmt.Sprint(n)).JSON())}
		}
		mallorys, abroad, unsigned, short := peertest.Forgery{Before: says(hers, s.q.Origin+list), Cover: covered}, lie(1), lie(2), lie(3)
		abroad.Before, abroad.Cover = says(hers, s.p.Origin+list), covered
		unsigned.After = says(hers, s.q.Origin+list)
		short.Before, short.Cover = func(r *http.Request) { r.Header.Set("Collection-Synchronization", `digest="00"`) }, covered
		for _, f := range []peertest.Forgery{mallorys, abroad, unsigned, short} {
			s.accepted(s.forge(f))
		}
	}},
	{id: "NET-15", sends: "answers packed 1,000 times smaller, packed twice, in encodings nobody asked for, and of other lengths than they say", happens: "dropped, or 503: what is read is bounded, packed and unpacked", asks: 8, changes: true, play: func(s *siege) {
		answer := func(encoding string, body []byte) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", encoding)
				_, _ = w.Write(body) // the engine may have hung up
			}
		}
		padded := func(path string, n int) []byte { return append(s.served(path).JSON(), bytes.Repeat([]byte(" "), n)...) }
		s.accepted(s.boost(s.show("/net-15", answer("gzip", packed(s, padded("/net-15", 1000))))))
		if got := s.alice.Column(s, `SELECT uri FROM objects WHERE uri = $1`, s.p.Origin+"/net-15"); len(got) != 1 {
			s.Fatal("an honest answer was not taken")
		}
		var taken atomic.Int64
		s.unchanged(func() {
			s.accepted(s.boost(s.show("/net-15-bomb", answer("gzip", packed(s, padded("/net-15-bomb", 1<<20))))))
			s.accepted(s.boost(s.show("/net-15-large", answer("gzip", packed(s, padded("/net-15-large", 64<<20))))))
			s.accepted(s.boost(s.show("/net-15-twice", answer("gzip, gzip", packed(s, packed(s, padded("/net-15-twice", 0)))))))
			s.accepted(s.boost(s.show("/net-15-br", answer("br", padded("/net-15-br", 0)))))
			s.accepted(s.boost(s.show("/net-15-none", answer("gzip", padded("/net-15-none", 0)))))
			s.accepted(s.boost(s.show("/net-15-endless", stream(&taken, bytes.Repeat([]byte(" "), 64<<10)))))
			s.answered(s.boost(s.show("/net-15-short", hijacked(s, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n%s", vocab.ActivityJSON, s.served("/net-15-short").JSON())
				return cmp.Or(err, io.EOF)
			}))), 503)
		})
		if n := taken.Load(); n > 16<<20 {
			s.Errorf("%d bytes of an endless answer were taken, want little more than 1 MiB", n)
		}
	}},
	{id: "NET-16", sends: "answers byte by byte, in head or body, endless interim answers, a million headers, and 30 keys at once on a server that does so", happens: "503 within the time for a fetch; 8 requests at most wait for one server, and others are asked meanwhile", asks: 6, play: func(s *siege) {
		slow := map[string]http.HandlerFunc{
			"body":    func(w http.ResponseWriter, _ *http.Request) { _ = trickle(w) }, // the engine has hung up
			"head":    hijacked(s, trickle),
			"silence": hijacked(s, func(io.Writer) error { return nil }),
			"interim": hijacked(s, func(w io.Writer) (err error) {
				for err == nil {
					_, err = io.WriteString(w, "HTTP/1.1 100 Continue\r\n\r\n")
				}
				return err
			}),
			"headers": hijacked(s, func(w io.Writer) error {
				_, err := io.WriteString(w, "HTTP/1.1 200 OK\r\n")
				for n := 0; err == nil; n++ {
					_, err = fmt.Fprintf(w, "X-%d: x\r\n", n)
				}
				return err
			}),
		}
		var all sync.WaitGroup
		for name, h := range slow {
			object := s.show("/net-16-"+name, h)
			all.Go(func() { s.answered(s.boost(object), 503) })
		}
		far := peertest.New(s, "127.0.0.3")
		var now, most atomic.Int64
		arrived := make(chan struct{}, 30)
		for n := range 30 {
			path := fmt.Sprint("/users/slow", n)
			far.Handle(path, func(w http.ResponseWriter, _ *http.Request) {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				arrived <- struct{}{}
				_ = trickle(w) // the engine has hung up
			})
			all.Go(func() { s.answered(s.claim("", far.Origin+path, signature.RFC9421), 503) })
		}
		<-arrived
		s.accepted(s.boost(s.q.Origin + "/net-16-nothing"))
		all.Wait()
		if n := most.Load(); n > 8 {
			s.Errorf("%d requests waited for one server, want 8 at most", n)
		}
	}},
	{id: "NET-17", sends: "certificates that are expired, self-signed, of nobody we trust, for another name, signed with SHA-1, or with TLS 1.1", happens: "503, and nothing is asked for, nor without TLS", play: func(s *siege) {
		const at = "127.0.0.2"
		good := func(*x509.Certificate) {}
		old := s.authority.certify(s, at, good)
		old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		foreign := newAuthority(s)
		for name, config := range map[string]*tls.Config{
			"good":        s.authority.certify(s, at, good),
			"self-signed": {},
			"foreign":     foreign.certify(s, at, good),
			"expired":     s.authority.certify(s, at, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }),
			"early":       s.authority.certify(s, at, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }),
			"other name":  s.authority.certify(s, "127.0.0.3", good),
			"no name":     s.authority.certify(s, at, func(c *x509.Certificate) { c.IPAddresses, c.Subject.CommonName = nil, at }),
			"old":         old,
			"SHA-1":       s.authority.certify(s, at, func(c *x509.Certificate) { c.SignatureAlgorithm = x509.ECDSAWithSHA1 }),
		} {
			peer := peertest.NewTLS(s, at, config)
			a := s.claim("", peer.Origin+"/users/nobody", signature.RFC9421)
			if name == "good" {
				s.unauthorized(a)
			} else {
				s.answered(a, 503)
			}
			if asked := len(peer.Asked()) > 0; asked != (name == "good") {
				s.Errorf("a server with a certificate that is %s was asked: %v", name, asked)
			}
		}
	}},
	{id: "NET-18", sends: "HTML in place of a document, with links to others", happens: "401, or dropped: HTML is never parsed", asks: 4, play: func(s *siege) {
		page := []byte(`<html><head><link rel="alternate" type="application/activity+json" href="` + string(s.mallory.ID) + `"><link rel="alternate" type="application/activity+json" href="/net-18-1">` +
			strings.Repeat(`<link rel="a`+strings.Repeat(" ", 1000), 500))
		for n, kind := range []string{"text/html", "text/html; charset=utf-8", "application/xhtml+xml"} {
			object := s.show(fmt.Sprint("/net-18-", n), func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", kind)
				_, _ = w.Write(page) // the engine may have hung up
			})
			if n == 0 {
				s.unauthorized(s.claim("", object+"?actor", signature.RFC9421))
			}
			s.accepted(s.boost(object))
		}
	}},
	{id: "NET-19", sends: "an activity for alice that makes the engine ask a third server, which refuses", happens: "dropped: the instance actor asks, never in alice's name", asks: 2, play: func(s *siege) {
		var signed sync.Map
		s.q.Handle("/net-19", func(w http.ResponseWriter, r *http.Request) {
			signed.Store(r.Header.Get("Signature-Input")+r.Header.Get("Signature"), true)
			w.WriteHeader(http.StatusUnauthorized)
		})
		s.accepted(s.boost(s.q.Origin + "/net-19"))
		n := 0
		signed.Range(func(by, _ any) bool {
			n++
			if !strings.Contains(by.(string), `"`+s.home.URL+`/actor#main-key"`) {
				s.Errorf("signed with %s, want the instance actor's key", by)
			}
			return true
		})
		if n == 0 {
			s.Error("the third server was not asked")
		}
	}},
	{id: "NET-20", sends: "a note at the end of 10,000 answers, in circles, with replies on other servers", happens: "taken as it is: nothing of a thread is fetched but what an activity is about", asks: 1, changes: true, play: func(s *siege) {
		chain := s.served("/net-20")
		chain["inReplyTo"] = s.p.Origin + "/net-20-parent"
		chain["replies"] = vocab.Doc{"type": "Collection", "id": s.q.Origin + "/net-20-replies", "first": s.q.Origin + "/net-20-replies?page=1", "totalItems": 1_000_000_000}
		s.p.Serve("/net-20", chain.JSON())
		s.accepted(s.boost(s.p.Origin + "/net-20"))
		for name, parent := range map[string]string{"self": s.id(s.mallory, "self-note"), "far": s.q.Origin + "/net-20-far", "back": s.id(s.mallory, "far-note")} {
			create := s.create(s.mallory, name)
			create["object"].(vocab.Doc)["inReplyTo"] = parent
			create["object"].(vocab.Doc)["replies"] = chain["replies"]
			s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", create))
		}
	}},
	{id: "NET-21", sends: "an actor whose collections go on without end, in circles and over other servers", happens: "202: no collection of others is read", asks: 1, changes: true, play: func(s *siege) {
		answer, _ := s.impostor("endless", nil, func(a *peertest.Actor) {
			for _, name := range []string{"outbox", "followers", "following", "featured"} {
				path := "/net-21-" + name
				s.p.Serve(path, vocab.Doc{"id": s.p.Origin + path, "type": "OrderedCollectionPage", "totalItems": 1_000_000_000, "next": s.p.Origin + path, "partOf": s.q.Origin + path}.JSON())
				a.Doc[name] = s.p.Origin + path
			}
		})
		s.accepted(answer)
	}},
	{id: "NET-22", sends: "keys on hundreds of names below one domain, as a wildcard in its DNS makes them", happens: "401, then 429: what is asked of others is counted by registrable domain", asks: manyKeys + 20, play: func(s *siege) {
		s.say("*.farm.example", addresses("127.0.0.2"))
		limited := 0
		for n := range manyKeys + 40 {
			a := s.claim("", fmt.Sprintf("http://n%d.farm.example:%s/net-22", n, s.port()), signature.RFC9421)
			s.answered(a, 401, 429)
			if a.Status == http.StatusTooManyRequests {
				limited++
			}
		}
		if limited == 0 {
			s.Error("none was too many")
		}
	}},
	{id: "NET-23", sends: "an actor with 1,000 keys, other names, pictures and links elsewhere", happens: "202 by a key among the first, else 401: nothing of what it names is fetched", asks: 1 + 4, changes: true, play: func(s *siege) {
		crowd := func(a *peertest.Actor, own int) {
			var keys, names, attached []any
			for n := range 1000 {
				names = append(names, fmt.Sprint(s.q.Origin, "/net-23/", n))
				attached = append(attached, vocab.Doc{"type": "Image", "url": fmt.Sprint(s.q.Origin, "/net-23/", n)})
				if n == own {
					keys = append(keys, a.Doc["publicKey"])
					continue
				}
				keys = append(keys, fmt.Sprint(s.p.Origin, "/net-23/key", n))
			}
			a.Doc["publicKey"], a.Doc["alsoKnownAs"], a.Doc["attachment"] = keys, names, attached
			for _, name := range []string{"icon", "image", "url", "movedTo"} {
				a.Doc[name] = s.q.Origin + "/net-23/" + name
			}
		}
		answer, _ := s.impostor("first", nil, func(a *peertest.Actor) { crowd(a, 0) })
		s.accepted(answer)
		s.unchanged(func() {
			answer, _ := s.impostor("last", nil, func(a *peertest.Actor) { crowd(a, 999) })
			s.unauthorized(answer)
		})
	}},
	{id: "NET-24", sends: "contexts at addresses of all servers, in activities, actors and notes", happens: "202: no context is ever fetched", asks: 2, changes: true, play: func(s *siege) {
		contexts := []any{vocab.ContextAS, s.p.Origin + "/context", s.q.Origin + "/context", vocab.Doc{"@import": s.q.Origin + "/import"}, "http://127.0.0.9:" + s.wall("127.0.0.9:0") + "/context"}
		create := s.create(s.mallory, "with-context")
		create["@context"], create["object"].(vocab.Doc)["@context"] = contexts, contexts
		s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", create))
		answer, _ := s.impostor("with-context", nil, func(a *peertest.Actor) { a.Doc["@context"] = append(contexts, a.Doc["@context"]) })
		s.accepted(answer)
		note := s.served("/net-24")
		note["@context"] = contexts
		s.p.Serve("/net-24", note.JSON())
		s.accepted(s.boost(s.p.Origin + "/net-24"))
	}},
}
