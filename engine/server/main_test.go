package server_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/delivery"
	"github.com/lightweb/lightweb/engine/enginetest/keytest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/feed"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/outbox"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/search"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/server/apitest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/socket"
	"github.com/lightweb/lightweb/engine/thread"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestMain(m *testing.M) { dbtest.Main(dbtest.Tidy{M: m}) }

const origin = "https://example.org"

var start = time.Date(2026, 2, 21, 12, 0, 0, 0, time.UTC)

// inbox is an inbox whose answers the test sets.
type inbox struct {
	err  error
	user vocab.Username
	body []byte

	counted []vocab.ID
	signer  *vocab.Actor // the signer that Admit returns
	refuses error        // the error that Count returns
}

func (i *inbox) Receive(_ context.Context, _ *http.Request, body []byte, user vocab.Username) error {
	i.user, i.body = user, body
	return i.err
}

// ReceiveLarge reads the body, unless the test has set an error.
func (i *inbox) ReceiveLarge(_ context.Context, _ *http.Request, user vocab.Username, read func(payer string) ([]byte, error)) (err error) {
	i.user = user
	if i.err == nil {
		i.body, err = read("peer.example")
	}
	return cmp.Or(i.err, err)
}

func (i *inbox) Count(signer vocab.ID) error {
	i.counted = append(i.counted, signer)
	return i.refuses
}

// Admit returns the signer that the test has set.
func (i *inbox) Admit(context.Context, *http.Request, []byte) (*vocab.Actor, error) {
	return i.signer, i.err
}

// dispatcher is an outbox whose answers the test sets.
type dispatcher struct {
	result outbox.Result
	err    error
	asked  outbox.Dispatch

	found        *vocab.Actor
	wanted       string // the handle that FindActor was asked for
	forAssistant bool

	object *vocab.Object
	sought []vocab.ID // the ids that FindObject was asked for
}

func (d *dispatcher) Dispatch(_ context.Context, asked outbox.Dispatch) (outbox.Result, error) {
	d.asked = asked
	return d.result, d.err
}

func (d *dispatcher) AttemptQuotas(context.Context, vocab.Username, uuid.UUID) ([]policy.Quota, error) {
	return []policy.Quota{{Name: "hour", Limit: 60, Window: time.Hour, Left: 59, Reset: time.Minute}, {Name: "day", Limit: 500, Window: 24 * time.Hour, Left: 499}}, nil
}

func (d *dispatcher) FindActor(_ context.Context, _ vocab.Username, isAssistant bool, name string) (*vocab.Actor, error) {
	d.wanted, d.forAssistant = name, isAssistant
	return d.found, d.err
}

func (d *dispatcher) FindObject(_ context.Context, _ vocab.Username, id vocab.ID) (*vocab.Object, *vocab.Actor, error) {
	d.sought = append(d.sought, id)
	return d.object, d.found, d.err
}

// world stands for all other servers. Every fetch from them fails. world records who pays for each
// fetch.
type world struct {
	err error

	mu     sync.Mutex
	payers []string
}

func (w *world) Get(ctx context.Context, _ transport.Request) (*transport.Response, error) {
	w.mu.Lock()
	w.payers = append(w.payers, policy.PayerOf(ctx))
	w.mu.Unlock()
	if w.err == nil {
		return nil, fault.New(fault.Unavailable, "the other server does not answer")
	}
	return nil, w.err
}

// fixture is a server with real stores, the users alice and bob, and carol, an actor of another
// server.
type fixture struct {
	*testing.T
	store      *db.Cluster
	local      *actor.Local
	keys       *actor.Keyring
	registry   *registry.Registry
	alice, bob vocab.Username
	others     *world
	inbox      *inbox
	outbox     *dispatcher
	members    *conversation.Members
	deps       server.Deps
	server     *server.Server
	public     http.Handler
	admin      http.Handler
	ready      error
	eventsWait bool
	carol      *vocab.Actor
	carolKey   signature.Key
	policy     policy.Lists
}

func newFixture(t *testing.T, change ...func(*server.Deps)) *fixture {
	t.Helper()
	store := dbtest.New(t)
	data, users := t.TempDir(), t.TempDir()
	log := slog.New(slog.DiscardHandler)
	f := &fixture{T: t, store: store, keys: actor.NewKeyring(users, data, origin), registry: registry.New(data, users, log),
		others: &world{}, inbox: &inbox{}, outbox: &dispatcher{}, policy: policy.Lists{Blocked: []string{"blocked.example"}}}
	keytest.Lend(t, filepath.Join(data, "instance", "keys"))
	if err := f.keys.CreateInstance(); err != nil {
		t.Fatal(err)
	}
	f.local = actor.NewLocal(origin, f.keys, f.registry, "Lightweb")
	f.alice, f.bob = f.user("alice"), f.user("bob")
	f.carol, f.carolKey = f.remote("https://peer.example/users/carol")
	now := func() time.Time { return start }
	gate := policy.NewGate(func() policy.Lists { return f.policy }, policy.Open, f.local.Host())
	resolver := actor.NewResolver(actor.ResolverDeps{Local: f.local, Users: store.Instance.Users, Store: store.Instance.Actors, Keeper: store.Instance.Actors, Fetch: f.others, Gate: gate, TTL: time.Hour, Now: now, Log: log})
	keys, err := keyspace.Open(keyspace.Config{CacheURL: "redis://127.0.0.1:1", Log: log}) // no Redis listens at this port
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := keys.Close(); err != nil {
			t.Error(err)
		}
	})
	f.deps = server.Deps{Store: store, Local: f.local, Verifier: actor.NewVerifier(resolver, gate, origin, now), Gate: gate, Clients: policy.NewLimiter(policy.Rate{}, now, 1), Inbox: f.inbox, Outbox: f.outbox,
		Feed: feed.New(feed.NewDatabase(store, f.local, f.registry, handler.HasEmoji), gate, f.registry, f.local), Profiles: f.registry, Pictures: f.registry, Log: log, Metrics: prometheus.NewRegistry(), Now: now, Version: "0.1.0", Redis: keys.Events,
		Ready: func(context.Context) error { return f.ready }, EventsWait: func() bool { return f.eventsWait }, BodyLimit: 1 << 20, PageSize: 2,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	f.deps.Conversations = conversation.NewRegistry(conversation.Deps{Store: store, Actors: f.local, Finder: resolver, Rules: f.registry, Log: log, Now: now,
		Inboxes: func(all []user.Destination) []user.Inbox { return delivery.Destinations(all, nil, f.local.InboxOwner) }})
	client := transport.New(transport.Config{AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true, Now: now}, gate, &peertest.Dialects{})
	t.Cleanup(client.Close)
	people := actor.NewResolver(actor.ResolverDeps{Local: f.local, Users: store.Instance.Users, Store: store.Instance.Actors, Keeper: store.Instance.Actors, Fetch: client, Gate: gate, TTL: time.Hour, AllowHTTP: true, Now: now, Log: log})
	f.members = conversation.NewMembers(conversation.MemberDeps{Registry: f.deps.Conversations, Store: store, Users: store.Instance.Users, Local: f.local, Hosts: client, Keys: f.keys, People: people, Gate: gate, Log: log, Now: now})
	t.Cleanup(func() {
		if err := f.members.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	f.deps.Members = f.members
	f.deps.Lookups = policy.Lookups.Limiter(now)
	f.deps.Threads = thread.New(thread.Deps{Store: store, Local: f.local, Profiles: f.registry, Gate: gate, Finder: f.outbox, Others: resolver, Lookups: f.deps.Lookups, Log: log, Now: now})
	f.deps.Search = search.New(search.Deps{Store: store, Shower: f.deps.Threads, Gate: gate, Log: log, Now: now})
	f.deps.Sockets = socket.NewHub(socket.Deps{Store: store, Streams: keys.Events, Tokens: store.Instance.Tokens, Local: f.local, Profiles: f.registry, Log: log, Now: now, OfUser: policy.SocketsOfUser})
	for _, c := range change {
		c(&f.deps)
	}
	f.server = server.New(f.deps)
	store.Subscribe(user.Subscriber{Name: "pages", Committed: f.server.Committed}, user.Subscriber{Name: "sockets", Committed: f.deps.Sockets.Committed}, user.Subscriber{Name: "members", Committed: f.members.Committed})
	f.public, f.admin = f.server.Public(), f.server.Admin(false)
	return f
}

func (f *fixture) user(name string) vocab.Username {
	f.Helper()
	u := dbtest.User(f, f.store, name)
	keytest.Lend(f, f.keys.Dir(u))
	if err := f.keys.Create(u); err != nil {
		f.Fatal(err)
	}
	return u
}

// remoteKey returns the one key of all actors of other servers. Making a key is slow.
var remoteKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// remote stores an actor of another server, and returns the actor and its key.
func (f *fixture) remote(id string) (*vocab.Actor, signature.Key) {
	f.Helper()
	der, err := x509.MarshalPKIXPublicKey(&remoteKey().PublicKey)
	if err != nil {
		f.Fatal(err)
	}
	a, err := vocab.ParseActor(vocab.Doc{"id": id, "type": "Person", "inbox": id + "/inbox", "followers": id + "/followers", "lw:mls": vocab.Doc{"deliveryVersion": 1}, "publicKey": vocab.Doc{
		"id": id + "#main-key", "owner": id, "publicKeyPem": string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}}.JSON())
	if err != nil {
		f.Fatal(err)
	}
	if err := f.store.Instance.Actors.Save(f.Context(), instance.RemoteActor{Actor: a, FetchedAt: start}); err != nil {
		f.Fatal(err)
	}
	return a, signature.Key{ID: id + "#main-key", Private: remoteKey()}
}

func (f *fixture) write(u vocab.Username, work func(context.Context, *user.Tx) error) {
	f.Helper()
	if err := f.store.Write(f.Context(), u, work); err != nil {
		f.Fatal(err)
	}
}

// post stores a note by u that is addressed to the actors in the parameter to. It returns the ids
// of the Create and of the note.
func (f *fixture) post(u vocab.Username, text string, at time.Time, to ...vocab.ID) (activity, object vocab.ID) {
	f.Helper()
	activity, object = f.local.NewActivityID(u), f.local.NewObjectID(u)
	named := make([]any, len(to))
	for i, id := range to {
		named[i] = string(id)
	}
	note := vocab.Doc{"id": string(object), "type": "Note", "attributedTo": string(f.local.ID(u)), "content": "<p>" + text + "</p>",
		"to": named, "bto": []any{"https://hidden.example/users/dan"}, "published": at.Format(time.RFC3339)}
	create := vocab.Doc{"@context": vocab.Context(), "id": string(activity), "type": "Create", "actor": string(f.local.ID(u)), "to": named,
		"bcc": []any{"https://hidden.example/users/dan"}, "object": note}
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		if _, err := tx.Objects.Add(ctx, user.Object{ID: uuid.Must(uuid.NewV7()), URI: object, Published: at, Raw: note.JSON()}); err != nil {
			return err
		}
		id := uuid.Must(uuid.NewV7())
		if err := tx.Activities.Add(ctx, user.Activity{ID: id, URI: activity, Direction: user.Outbound, Type: "Create", Actor: f.local.ID(u),
			Object: object, Published: at, Raw: create.JSON()}); err != nil {
			return err
		}
		return tx.Feed.Add(ctx, user.FeedEntry{ID: id, Activity: activity, Actor: f.local.ID(u), Published: at})
	})
	return activity, object
}

func (f *fixture) bury(u vocab.Username, object vocab.ID) {
	f.Helper()
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		_, err := tx.Objects.Bury(ctx, user.Grave{URI: object, Author: f.local.ID(u), Tombstone: vocab.Doc{"id": string(object), "type": "Tombstone",
			"formerType": "Note", "deleted": start.Format(time.RFC3339)}.JSON()}, start)
		return err
	})
}

func (f *fixture) relate(u vocab.Username, kind, status string, who vocab.ID, at time.Time) {
	f.Helper()
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: who, Type: kind, Status: status, Activity: who + "/follow"}, at)
	})
}

// befriend stores a friendship of u with an actor, or a request for one.
func (f *fixture) befriend(u vocab.Username, kind, status, direction string, who vocab.ID, at time.Time) {
	f.Helper()
	f.write(u, func(ctx context.Context, tx *user.Tx) error {
		return tx.Relationships.Set(ctx, user.Relationship{Actor: who, Type: kind, Status: status, Activity: who + "/offer", Direction: direction}, at)
	})
}

// token makes a token of u and returns its secret.
func (f *fixture) token(u vocab.Username, scopes ...string) string {
	f.Helper()
	secret, digest := token.New(token.API, u)
	if err := f.store.Instance.Tokens.Add(f.Context(), instance.Token{ID: uuid.New(), User: u, Scopes: scopes, CreatedAt: start}, digest); err != nil {
		f.Fatal(err)
	}
	return secret
}

// asking changes a request before it is made.
type asking func(*http.Request)

func header(name, value string) asking { return func(r *http.Request) { r.Header.Set(name, value) } }
func bearerToken(token string) asking  { return header("Authorization", "Bearer "+token) }

// signed signs a request with a key, in a dialect.
func (f *fixture) signed(k signature.Key, d signature.Dialect) asking {
	return func(r *http.Request) {
		c, err := http.NewRequest(r.Method, origin+r.RequestURI, nil)
		if err != nil {
			f.Fatal(err)
		}
		if err := signature.Sign(c, nil, k, d, start); err != nil {
			f.Fatal(err)
		}
		for name, v := range c.Header {
			r.Header[name] = v
		}
	}
}

// response is a response with its whole body.
type response struct {
	*http.Response
	body []byte
}

func (r response) doc(t *testing.T) vocab.Doc {
	t.Helper()
	d, err := vocab.ParseDoc(r.body)
	if err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
	return d
}

func (r response) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(r.body, into); err != nil {
		t.Fatalf("%s: %v", r.body, err)
	}
}

// ask sends a request to the public handler. The parameter target is a path, or an id of this
// server.
func (f *fixture) ask(method, target string, how ...asking) response {
	f.Helper()
	return ask(f, f.public, method, strings.TrimPrefix(target, origin), "", how...)
}

func (f *fixture) get(target string, how ...asking) response {
	f.Helper()
	return f.ask(http.MethodGet, target, how...)
}

func (f *fixture) send(target, body string, how ...asking) response {
	f.Helper()
	return ask(f, f.public, http.MethodPost, target, body, how...)
}

func ask(t testing.TB, h http.Handler, method, target, body string, how ...asking) response {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "example.org"
	for _, change := range how {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	res := w.Result()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	described(t).Check(t, apitest.Exchange{Method: r.Method, Path: r.URL.Path, Status: res.StatusCode, Header: res.Header, Body: b})
	return response{res, b}
}

// described returns the description. Tests compare every answer of the client API with it.
func described(t testing.TB) apitest.Description {
	readOnce.Do(func() { readDescription = apitest.Read(t, server.OpenAPI()) })
	return readDescription
}

var (
	readOnce        sync.Once
	readDescription apitest.Description
)

// want fails the test unless the response has the given status.
func (r response) want(t testing.TB, status int) response {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", r.StatusCode, status, r.body)
	}
	return r
}

// blockedKey returns the key of an actor on a blocked host.
func (f *fixture) blockedKey() signature.Key {
	return signature.Key{ID: "https://blocked.example/users/mallory#main-key", Private: remoteKey()}
}

// state sets the state of a user, such as suspended or deleted.
func (f *fixture) state(u vocab.Username, state string) {
	f.Helper()
	if err := f.store.Instance.Users.SetState(f.Context(), u, state); err != nil {
		f.Fatal(err)
	}
}
