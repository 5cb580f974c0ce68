package server_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/token"
)

// withRedis makes a server store its sessions in the Redis server s.
func withRedis(t *testing.T, s *redistest.Server) func(*server.Deps) {
	t.Helper()
	k, err := keyspace.Open(keyspace.Config{CacheURL: s.URL(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(d *server.Deps) { d.Redis = k.Events }
}

// begin exchanges a token for a session.
func (f *fixture) begin(secret string) string {
	f.Helper()
	var made struct {
		Session     string
		Scopes      []string
		IdleSeconds int
	}
	r := f.send("/api/session", "", bearerToken(secret)).want(f, http.StatusCreated)
	if err := json.Unmarshal(r.body, &made); err != nil || made.Session == "" || made.IdleSeconds != 30*24*3600 || len(made.Scopes) == 0 || r.Header.Get("Cache-Control") != "private, no-store" {
		f.Fatalf("a session was answered %s, %v, %v", r.body, r.Header, err)
	}
	return made.Session
}

// A session permits the same requests as its token, and cannot begin another session.
func TestASessionIsAsGoodAsItsToken(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := newFixture(t, withRedis(t, redis))
	reads, writes := f.begin(f.token(f.alice, instance.ScopeRead)), f.begin(f.token(f.alice, instance.ScopeWrite))
	f.get("/api/feed", bearerToken(reads)).want(f, 200)
	f.get("/users/alice/inbox", bearerToken(reads)).want(f, 200)
	f.get("/api/feed", bearerToken(writes)).want(f, 403)
	f.send("/api/activity", `{"action":"CreateNote","params":{}}`, bearerToken(reads)).want(f, 403)
	f.send("/api/session", "", bearerToken(reads)).want(f, 403)
	f.ask(http.MethodDelete, "/api/session", bearerToken(f.token(f.alice, instance.ScopeRead))).want(f, 403)
	for key := range strings.FieldsSeq(redis.Do("KEYS", "alice:session:*")) {
		if ttl := redis.Do("TTL", key); ttl == "-1" {
			t.Errorf("%s lasts for ever", key)
		}
	}
}

// A session ends when a client ends it, when it is not used for long, when its token is revoked,
// and when Redis loses it. Afterwards the server refuses it like an unknown token.
func TestASessionEnds(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := newFixture(t, withRedis(t, redis))
	for _, tt := range []struct {
		name string
		end  func(session string, token uuid.UUID)
	}{
		{"when it is ended", func(session string, _ uuid.UUID) {
			f.ask(http.MethodDelete, "/api/session", bearerToken(session)).want(f, http.StatusNoContent)
		}},
		{"with its token", func(_ string, token uuid.UUID) {
			if err := f.store.Instance.Tokens.Remove(f.Context(), f.alice, token); err != nil {
				t.Fatal(err)
			}
		}},
		{"with Redis", func(string, uuid.UUID) { redis.Do("FLUSHALL") }},
		{"when it was not used for long", func(session string, _ uuid.UUID) {
			for key := range strings.FieldsSeq(redis.Do("KEYS", "alice:session:*")) {
				redis.Do("PEXPIRE", key, "1")
			}
			redistest.Eventually(t, "no session is left", func() bool { return redis.Do("KEYS", "alice:session:*") == "" })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			secret, digest := token.New(token.API, f.alice)
			id := uuid.New()
			if err := f.store.Instance.Tokens.Add(t.Context(), instance.Token{ID: id, User: f.alice, Scopes: []string{instance.ScopeRead}, CreatedAt: start}, digest); err != nil {
				t.Fatal(err)
			}
			session := f.begin(secret)
			f.get("/api/feed", bearerToken(session)).want(f, 200)
			tt.end(session, id)
			r := f.get("/api/feed", bearerToken(session)).want(f, 401)
			if r.Header.Get("WWW-Authenticate") != `Bearer error="invalid_token"` {
				t.Errorf("WWW-Authenticate: %q", r.Header.Get("WWW-Authenticate"))
			}
		})
	}
	f.ask(http.MethodDelete, "/api/session", bearerToken("lws_alice_"+strings.Repeat("a", 43))).want(f, 401)
	f.ask(http.MethodDelete, "/api/session").want(f, 401)
}

// The name in a session only says among whose sessions the server looks for it. It gives no access
// to another user.
func TestASessionIsOfNobodyElse(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := newFixture(t, withRedis(t, redis))
	session := f.begin(f.token(f.alice, instance.ScopeRead))
	f.get("/api/feed", bearerToken(strings.Replace(session, "alice", "bob", 1))).want(f, 401)
	key := strings.TrimSpace(redis.Do("KEYS", "alice:session:*"))
	redis.Do("RENAME", key, strings.Replace(key, "alice", "bob", 1)) // a session of bob's that names a token of alice's
	f.get("/api/feed", bearerToken(strings.Replace(session, "alice", "bob", 1))).want(f, 401)
}

// wantGoesOn checks that the next event of a stream of alice's is one that happens now.
func (f *fixture) wantGoesOn(stays *eventStream) {
	f.Helper()
	f.addEvent(f.alice, "like.received")
	if got := stays.await("event: "); got != "like.received" {
		f.Errorf("the stream of the token goes on with %s", got)
	}
}

// A stream of events ends with the session that opened it. Other streams continue.
func TestAStreamEndsWithItsSession(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	srv, secret := f.serve(), f.token(f.alice, instance.ScopeRead)
	session := f.begin(secret)
	ends, stays := f.openStream(srv.URL, session), f.openStream(srv.URL, secret)
	ends.await("event: hello")
	stays.await("event: hello")
	f.ask(http.MethodDelete, "/api/session", bearerToken(session)).want(f, http.StatusNoContent)
	ends.await("event: closed")
	f.wantGoesOn(stays)
}

// When all sessions are ended, the streams of sessions that Redis has lost end, too. Streams of
// tokens continue.
func TestEverywhereEndsTheStreamsOfSessionsThatRedisLost(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := newFixture(t, withRedis(t, redis))
	srv, secret := f.serve(), f.token(f.alice, instance.ScopeRead, instance.ScopeWrite)
	lost, stays := f.openStream(srv.URL, f.begin(secret)), f.openStream(srv.URL, secret)
	lost.await("event: hello")
	stays.await("event: hello")
	redis.Do("FLUSHALL")
	f.ask(http.MethodDelete, "/api/session?everywhere=true", bearerToken(f.begin(secret))).want(f, http.StatusNoContent)
	lost.await("event: closed")
	f.wantGoesOn(stays)
}

// A new session displaces the oldest one, but Redis fails before the oldest session is removed.
// The next new session removes it.
func TestADisplacedSessionThatIsLeftIsEndedByTheNextOne(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := newFixture(t, withRedis(t, redis))
	secret := f.token(f.alice, instance.ScopeRead, instance.ScopeWrite)
	first := f.begin(secret)
	for range 99 {
		f.begin(secret)
	}
	redis.Do("LPUSH", "alice:sessions", "session:new") // the part of a new session that Redis stored before it failed
	f.get("/api/me", bearerToken(first)).want(f, 200)
	f.begin(secret)
	f.get("/api/me", bearerToken(first)).want(f, 401)
	if n := redis.Do("LLEN", "alice:sessions"); n != "100" {
		t.Errorf("%s sessions are listed, want 100", n)
	}
}

func TestAUserHasOnlySoManySessions(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := newFixture(t, withRedis(t, redis))
	secret, writes := f.token(f.alice, instance.ScopeRead), f.begin(f.token(f.alice, instance.ScopeRead, instance.ScopeWrite))
	var all []string
	for range 102 {
		all = append(all, f.begin(secret))
	}
	f.get("/api/feed", bearerToken(all[0])).want(f, 401)
	f.get("/api/feed", bearerToken(all[1])).want(f, 401)
	for _, s := range []string{all[2], all[101]} {
		f.get("/api/feed", bearerToken(s)).want(f, 200)
	}
	if n := len(strings.Fields(redis.Do("KEYS", "alice:session:*"))); n != 101 {
		t.Errorf("%d sessions are kept, want 100 and the one that writes", n)
	}
	f.get("/api/feed", bearerToken(writes)).want(f, 200) // a session that may only read does not displace one that may write
	f.ask(http.MethodDelete, "/api/session?everywhere=true", bearerToken(writes)).want(f, http.StatusNoContent)
	f.get("/api/feed", bearerToken(all[101])).want(f, 401)
}

// A token of scope llm cannot end the sessions of the user's own programs by making others.
func TestAnAssistantsSessionsDisplaceNoneOfTheUsers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	reads, secret := f.begin(f.token(f.alice, instance.ScopeRead)), f.token(f.alice, instance.ScopeLLM)
	first := f.begin(secret)
	for range 100 {
		f.begin(secret)
	}
	f.get("/api/feed", bearerToken(reads)).want(f, 200)
	f.get("/api/me", bearerToken(first)).want(f, 401)
}

// A session ends after the server accepted the request for a socket, and before the socket is
// open. The server refuses the socket.
func TestNoSocketOutlivesASessionThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	var ends atomic.Bool
	f := newFixture(t, withRedis(t, redis), func(d *server.Deps) {
		now := d.Now
		// the server calls Now when it looks up the session's token
		d.Now = func() time.Time {
			if ends.CompareAndSwap(true, false) {
				redis.Do("DEL", redis.Do("KEYS", "alice:session:*"))
			}
			return now()
		}
	})
	srv := f.serve()
	secret := f.token(f.alice, instance.ScopeRead)
	session := f.begin(secret)
	ends.Store(true)
	if s, refused := f.dialSocket(srv.URL, "", withToken(session)); s != nil || refused.StatusCode != http.StatusUnauthorized { //nolint:bodyclose // Dial has read it
		t.Error("a WebSocket is open without its session")
	}
	session = f.begin(secret)
	ends.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	f.get("/api/events", bearerToken(session), func(r *http.Request) { *r = *r.WithContext(ctx) }).want(f, http.StatusUnauthorized)
}

// Sessions that have ended or expired do not count. So a new session does not displace a valid one
// because of them.
func TestSessionsThatEndedDisplaceNone(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := newFixture(t, withRedis(t, redis))
	secret := f.token(f.alice, instance.ScopeRead)
	stays := f.begin(secret)
	for range 100 {
		f.ask(http.MethodDelete, "/api/session", bearerToken(f.begin(secret))).want(f, http.StatusNoContent)
	}
	f.get("/api/me", bearerToken(stays)).want(f, 200)
	if n := redis.Do("LLEN", "alice:sessions:reading"); n != "1" {
		t.Errorf("%s sessions are listed, want 1", n)
	}
	first := strings.TrimSpace(redis.Do("KEYS", "alice:session:*"))
	for range 99 {
		f.begin(secret)
	}
	for key := range strings.FieldsSeq(redis.Do("KEYS", "alice:session:*")) {
		if key != first {
			redis.Do("DEL", key) // as Redis does when the session expires
		}
	}
	f.begin(secret)
	f.get("/api/me", bearerToken(stays)).want(f, 200)
	if n := redis.Do("LLEN", "alice:sessions:reading"); n != "2" {
		t.Errorf("%s sessions are listed, want 2", n)
	}
}

// Redis answers but refuses writes. Requests with a session then get 503, and the session stays
// valid.
func TestSessionsWaitForARedisThatRefusesWrites(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := newFixture(t, withRedis(t, redis))
	secret := f.token(f.alice, instance.ScopeRead, instance.ScopeWrite)
	session := f.begin(secret)
	redis.FailWrites()
	for _, r := range []response{
		f.get("/api/feed", bearerToken(session)), f.send("/api/session", "", bearerToken(secret)),
		f.ask(http.MethodDelete, "/api/session", bearerToken(session)), f.ask(http.MethodDelete, "/api/session?everywhere=true", bearerToken(session)),
	} {
		if r.want(f, 503); r.Header.Get("Retry-After") == "" {
			t.Errorf("%s has no Retry-After", r.body)
		}
	}
	f.get("/api/feed", bearerToken(secret)).want(f, 200)
	redis.Do("CONFIG", "SET", "stop-writes-on-bgsave-error", "no")
	f.get("/api/feed", bearerToken(session)).want(f, 200)
}

// Without Redis, requests with a session get 503. Tokens still work without it.
func TestWithoutRedisTokensStillHold(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	f := newFixture(t, withRedis(t, redis))
	secret := f.token(f.alice, instance.ScopeRead)
	session := f.begin(secret)
	redis.Kill()
	for _, r := range []response{f.get("/api/feed", bearerToken(session)), f.send("/api/session", "", bearerToken(secret)), f.ask(http.MethodDelete, "/api/session", bearerToken(session))} {
		if r.want(f, 503); r.Header.Get("Retry-After") == "" {
			t.Errorf("%s has no Retry-After", r.body)
		}
	}
	f.get("/api/feed", bearerToken(secret)).want(f, 200)
	redis.Restart()
	redistest.Eventually(t, "Redis is back", func() bool { return f.get("/api/feed", bearerToken(session)).StatusCode == 401 })
}
