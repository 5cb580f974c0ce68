package actor

import (
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// clock is a clock that tests set forward.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// people has the users' profiles. Tests change them.
type people struct {
	mu sync.Mutex
	of map[vocab.Username]registry.User
}

func (p *people) User(u vocab.Username) registry.User {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := p.of[u]; ok {
		return c
	}
	return registry.DefaultUser()
}

func (p *people) set(u vocab.Username, c registry.User) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[u] = c
}

// dialects is a store that does not know the dialect of any host.
type dialects struct{}

func (dialects) Dialect(context.Context, string) (signature.Dialect, bool) { return 0, false }
func (dialects) Learn(context.Context, string, signature.Dialect)          {}

// keyFiles returns the files of two sets of keys. The sets are made once, because making keys is
// slow.
var keyFiles = sync.OnceValue(func() [2]map[string][]byte {
	var sets [2]map[string][]byte
	for i := range sets {
		dir, err := os.MkdirTemp("", "keys")
		if err == nil {
			err = makeKeys(dir, ed25519Fragment)
		}
		if err != nil {
			panic(err)
		}
		sets[i] = map[string][]byte{}
		for _, k := range kinds {
			if sets[i][k.name], err = os.ReadFile(keyFile(dir, k.name)); err != nil {
				panic(err)
			}
		}
		if err := os.RemoveAll(dir); err != nil {
			panic(err)
		}
	}
	return sets
})

// writeKeys writes a set of keys to a keyring's directory. The parameter set is the number of the
// set.
func writeKeys(t testing.TB, dir string, set int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range keyFiles()[set] {
		if err := os.WriteFile(keyFile(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// theirs returns the private keys of set 0 or 1, for an actor on a peer.
func theirs(t testing.TB, set int) (*rsa.PrivateKey, ed25519.PrivateKey) {
	t.Helper()
	dir := t.TempDir()
	writeKeys(t, dir, set)
	r, _, err := NewKeyring(dir, dir, "").readKey(keyFile(dir, "rsa"))
	if err != nil {
		t.Fatal(err)
	}
	e, _, err := NewKeyring(dir, dir, "").readKey(keyFile(dir, "ed25519"))
	if err != nil {
		t.Fatal(err)
	}
	return r.(*rsa.PrivateKey), e.(ed25519.PrivateKey)
}

func username(t testing.TB, s string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// peer simulates another server on loopback. It answers as the test has set with say, and counts
// requests.
type peer struct {
	*httptest.Server
	mu   sync.Mutex
	says map[string]http.HandlerFunc // handlers by the paths that they answer
	hits map[string]int
}

func newPeer(t testing.TB) *peer {
	t.Helper()
	p := &peer{says: map[string]http.HandlerFunc{}, hits: map[string]int{}}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		key := r.URL.Path
		if q := r.URL.Query().Get("resource"); q != "" {
			key += " " + strings.ToLower(q)
		}
		p.hits[key]++
		h := p.says[key]
		p.mu.Unlock()
		if h == nil {
			http.NotFound(w, r)
			return
		}
		h(w, r)
	}))
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.Start()
	t.Cleanup(p.Close)
	return p
}

func (p *peer) id(path string) vocab.ID { return vocab.ID(p.URL + path) }
func (p *peer) host() string            { return strings.TrimPrefix(p.URL, "http://") }

func (p *peer) say(path string, h http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.says[path] = h
}

// show makes the peer serve a document at a path.
func (p *peer) show(path string, d vocab.Doc) { p.say(path, activity(d)) }

// status makes the peer answer requests for a path with a status.
func (p *peer) status(path string, status int) {
	p.say(path, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
}

// finger makes the peer answer WebFinger for a handle. The answer names an actor and a subject.
func (p *peer) finger(handle, subject string, id vocab.ID) {
	d := vocab.Doc{"subject": "acct:" + subject, "links": []any{
		vocab.Doc{"rel": "http://webfinger.net/rel/profile-page", "type": "text/html", "href": string(id)},
		vocab.Doc{"rel": "self", "type": vocab.MediaType, "href": string(id)}}}
	p.say("/.well-known/webfinger acct:"+handle, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jrd+json")
		_, _ = w.Write(d.JSON()) // fails if the client has hung up
	})
}

func (p *peer) asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits[path]
}

// all returns the number of requests for all paths together.
func (p *peer) all() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.hits {
		n += h
	}
	return n
}

func activity(d vocab.Doc) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", vocab.ActivityJSON)
		_, _ = w.Write(d.JSON()) // fails if the client has hung up
	}
}

// person returns the document of an actor on p. The actor's #main-key is an RSA key. The parameter
// set is the number of the set that the key is from.
func (p *peer) person(t testing.TB, name string, set int) vocab.Doc {
	t.Helper()
	r, _ := theirs(t, set)
	id := p.URL + "/users/" + name
	return vocab.Doc{"@context": vocab.ActorContext(), "id": id, "type": "Person", "preferredUsername": name, "inbox": id + "/inbox",
		"publicKey": vocab.Doc{"id": id + "#main-key", "owner": id, "publicKeyPem": signature.MarshalPublicKeyPEM(&r.PublicKey)}}
}

// with returns a copy of d with changes. A change to nil removes a member.
func with(d vocab.Doc, changes vocab.Doc) vocab.Doc {
	out := vocab.Doc{}
	for k, v := range d {
		out[k] = v
	}
	for k, v := range changes {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = v
		}
	}
	return out
}

// node has those parts of an engine that this package implements. Its origin is on loopback.
type node struct {
	*Resolver
	verifier *Verifier
	local    *Local
	keys     *Keyring
	people   *people
	clock    *clock
	store    store
	policy   policy.Lists
}

const testTTL = 24 * time.Hour

// settings are the settings of a node that a test may change.
type settings struct {
	origin string
	store  store
	users  Users
	rate   policy.Rate
	clock  *clock
}

// newNode returns a node with the user alice. It makes a database unless s has a store.
func newNode(t testing.TB, s settings) *node {
	t.Helper()
	if s.origin == "" {
		s.origin = "https://us.example"
	}
	if s.store == nil {
		s.store = dbtest.New(t).Instance.Actors
	}
	if s.users == nil {
		s.users = nobody{}
	}
	if s.clock == nil {
		s.clock = &clock{t: time.Now().Truncate(time.Second)}
	}
	dir := t.TempDir()
	users, data := filepath.Join(dir, "users"), filepath.Join(dir, "data")
	n := &node{clock: s.clock, store: s.store, people: &people{of: map[vocab.Username]registry.User{}}}
	n.keys = NewKeyring(users, data, s.origin)
	writeKeys(t, filepath.Join(data, "instance", "keys"), 0)
	writeKeys(t, n.keys.Dir(username(t, "alice")), 1)
	n.local = NewLocal(s.origin, n.keys, n.people, "Lightweb test")
	gate := policy.NewGate(func() policy.Lists { return n.policy }, policy.Open, n.local.Host())
	client := transport.New(transport.Config{
		AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		AllowHTTP:      true,
		UserAgent:      "Lightweb/test",
		Timeout:        10 * time.Second,
		HostConns:      16,
		Now:            n.clock.now,
	}, gate, dialects{})
	t.Cleanup(client.Close)
	n.Resolver = NewResolver(ResolverDeps{Local: n.local, Users: s.users, Store: s.store, Keeper: s.store, Fetch: client, Gate: gate, KeyRate: s.rate, TTL: testTTL,
		AllowHTTP: true, Now: n.clock.now, Log: slog.New(slog.DiscardHandler)})
	n.verifier = NewVerifier(n.Resolver, gate, s.origin, n.clock.now)
	return n
}

// restarted returns a node that has only the store, origin and clock of n.
func (n *node) restarted(t testing.TB) *node {
	return newNode(t, settings{origin: n.local.Origin(), store: n.store, clock: n.clock})
}

// signed returns a request to n's shared inbox that is signed with k. It also returns the
// request's body.
func (n *node) signed(t testing.TB, k signature.Key, d signature.Dialect) (*http.Request, []byte) {
	t.Helper()
	body := []byte(`{"type":"Create"}`)
	r := httptest.NewRequest(http.MethodPost, n.local.Origin()+"/inbox", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", vocab.ActivityJSON)
	if err := signature.Sign(r, body, k, d, n.clock.now()); err != nil {
		t.Fatal(err)
	}
	return r, body
}

// signer signs a request with k. It returns the signer that the verifier of n finds.
func (n *node) signer(t testing.TB, k signature.Key, d signature.Dialect, want vocab.ID) (*vocab.Actor, error) {
	t.Helper()
	r, body := n.signed(t, k, d)
	claims, err := n.verifier.Claims(r, body)
	if err != nil {
		t.Fatal(err)
	}
	return n.verifier.Signer(context.Background(), claims, want)
}

// checkKind fails the test unless err has the kind want. Internal means that err must be nil.
func checkKind(t testing.TB, what string, err error, want fault.Kind) {
	t.Helper()
	if want == fault.Internal && err != nil || want != fault.Internal && fault.KindOf(err) != want {
		t.Errorf("%s = %v (kind %d), want kind %d", what, err, fault.KindOf(err), want)
	}
}

// store is a Store and also a Keeper, as the instance database is.
type store interface {
	Store
	Keeper
}
