package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"golang.org/x/crypto/argon2"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/token"
	"github.com/lightweb/lightweb/engine/vocab"
)

const password = "correct horse battery staple"

// hashed returns the hash of the constant password. It computes the hash once, because hashing is
// slow.
var hashed = sync.OnceValue(func() string { return token.HashPassword(password) })

// setPassword gives the user u the password in the constant password.
func (f *fixture) setPassword(u vocab.Username) {
	f.Helper()
	if err := f.store.Instance.Passwords.Set(f.Context(), u, instance.NewPassword(hashed())); err != nil {
		f.Fatal(err)
	}
}

// from sets the address that a request comes from.
func from(address string) asking { return func(r *http.Request) { r.RemoteAddr = address + ":1234" } }

var asJSON = header("Content-Type", "application/json")

// logIn tries to sign a user in with a password.
func (f *fixture) logIn(name, password string, how ...asking) response {
	f.Helper()
	body, err := json.Marshal(map[string]string{"username": name, "password": password})
	if err != nil {
		f.Fatal(err)
	}
	return f.send("/api/session", string(body), append([]asking{asJSON}, how...)...)
}

// session signs a user in, and returns the session.
func (f *fixture) session(name string, how ...asking) string {
	f.Helper()
	var made struct{ Session string }
	f.logIn(name, password, how...).want(f, http.StatusCreated).decode(f.T, &made)
	return made.Session
}

// counted returns the value of the server's counter with the given name and labels.
func (f *fixture) counted(name string, labels ...string) (sum float64) {
	f.Helper()
	families, err := f.deps.Metrics.Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			isMeant := family.GetName() == name
			for n, l := range m.GetLabel() {
				isMeant = isMeant && n < len(labels) && l.GetValue() == labels[n]
			}
			if isMeant {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func (f *fixture) hashings() int { return int(f.counted("lightweb_password_hashings_total")) }

func TestAPasswordMakesASession(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	f.setPassword(f.alice)
	r := f.logIn("alice", password).want(t, http.StatusCreated)
	var made struct {
		Session     string
		Scopes      []string
		IdleSeconds int
	}
	r.decode(t, &made)
	if !strings.HasPrefix(made.Session, "lws_alice_") || !slices.Equal(made.Scopes, []string{"read", "write"}) || made.IdleSeconds != 30*24*3600 || r.Header.Get("Cache-Control") != "private, no-store" || r.Header.Get("Set-Cookie") != "" {
		t.Errorf("a session is %+v, %v", made, r.Header)
	}
	f.get("/api/feed", bearerToken(made.Session)).want(t, 200)
	f.send("/api/activity", `{"action":"CreateNote","params":{}}`, asJSON, bearerToken(made.Session)).want(t, 201)
	f.send("/api/session", "", bearerToken(made.Session)).want(t, 403) // a session cannot be used as a token here
	f.ask(http.MethodDelete, "/api/session", bearerToken(made.Session)).want(t, http.StatusNoContent)
	f.get("/api/feed", bearerToken(made.Session)).want(t, 401)
	if right := f.counted("lightweb_logins_total", "right"); right != 1 {
		t.Errorf("%v logins are counted", right)
	}
}

// Every refused login gets the same answer at the same cost, whether the name exists or not.
func TestEveryWrongLoginIsAnsweredAlike(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	f.setPassword(f.alice)
	suspended := f.user("suspended")
	f.setPassword(suspended)
	f.state(suspended, instance.UserSuspended)
	var first map[string]any
	for n, tt := range []struct{ name, password string }{
		{"alice", "another password"}, {"alice", password + " "}, {"alice", ""}, {"alice", strings.Repeat("x", 1025)}, {"bob", password}, {"suspended", password},
		{"nobody", password}, {"NOBODY", password}, {"api", password}, {"", password}, {"alice@example.org", password},
	} {
		before := f.hashings()
		r := f.logIn(tt.name, tt.password, from(fmt.Sprintf("192.0.2.%d", n+1))).want(t, 401)
		if n := f.hashings() - before; n != 1 {
			t.Errorf("%q was answered after %d hashings, want 1", tt.name, n)
		}
		got := map[string]any{"body": r.doc(t), "size": len(r.body)}
		delete(got["body"].(vocab.Doc), "request_id")
		for name, lines := range r.Header {
			if name != "X-Request-Id" {
				got[name] = lines
			}
		}
		if first == nil {
			first = got
		}
		if d := cmp.Diff(first, got); d != "" {
			t.Errorf("%q is answered otherwise than alice (-alice +this):\n%s", tt.name, d)
		}
	}
	if first["body"].(vocab.Doc)["error"] != "wrong_credentials" {
		t.Errorf("the answer is %v", first)
	}
	if wrong := f.counted("lightweb_logins_total", "wrong"); wrong != 11 {
		t.Errorf("%v wrong logins are counted", wrong)
	}
}

func TestASessionOfAPasswordEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	passwords := f.store.Instance.Passwords
	for n, tt := range []struct {
		name string
		end  func(session string)
		lost bool // whether the session ends
	}{
		{"when another password is set", func(string) { f.setPassword(f.alice) }, true},
		{"when the password is removed", func(string) {
			if err := passwords.Remove(t.Context(), f.alice); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"when the user changes the password", func(session string) {
			f.send("/api/me/password", `{"current":"`+password+`","new":"another password"}`, asJSON, bearerToken(session)).want(t, http.StatusNoContent)
		}, true},
		{"when all are ended", func(session string) {
			f.ask(http.MethodDelete, "/api/session?everywhere=true", bearerToken(session)).want(t, http.StatusNoContent)
		}, true},
		{"when the user is suspended", func(string) { f.state(f.alice, instance.UserSuspended) }, true},
		{"not when a token is revoked", func(string) {
			secret, digest := token.New(token.API, f.alice)
			id := uuid.New()
			if err := f.store.Instance.Tokens.Add(t.Context(), instance.Token{ID: id, User: f.alice, Scopes: []string{"write"}, CreatedAt: start}, digest); err != nil {
				t.Fatal(err)
			}
			f.begin(secret)
			if err := f.store.Instance.Tokens.Remove(t.Context(), f.alice, id); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f.setPassword(f.alice)
			ours, others := f.session("alice", from(fmt.Sprintf("192.0.2.%d", n))), f.session("alice", from(fmt.Sprintf("198.51.100.%d", n)))
			f.get("/api/feed", bearerToken(ours)).want(t, 200)
			tt.end(ours)
			for _, s := range []string{ours, others} {
				if got := f.get("/api/feed", bearerToken(s)).StatusCode; (got == 401) != tt.lost {
					t.Errorf("a session is answered %d", got)
				}
			}
			f.state(f.alice, instance.UserActive)
		})
	}
}

// When all sessions are ended, the sessions of tokens end, too. The tokens stay valid. A session
// that may only read cannot end other sessions.
func TestAllSessionsAreEndedTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	f.setPassword(f.alice)
	f.setPassword(f.bob)
	reads, writes := f.token(f.alice, instance.ScopeRead), f.token(f.alice, instance.ScopeRead, instance.ScopeWrite)
	sessions := []string{f.begin(reads), f.begin(writes), f.session("alice")}
	bobs := f.session("bob")
	srv := f.serve()
	stream := f.openStream(srv.URL, sessions[2])
	stream.await("event: hello")
	f.ask(http.MethodDelete, "/api/session?everywhere=true", bearerToken(sessions[0])).want(t, 403)
	f.ask(http.MethodDelete, "/api/session?everywhere=true", bearerToken(writes)).want(t, 403)
	f.ask(http.MethodDelete, "/api/session?everywhere=yes", bearerToken(sessions[1])).want(t, 400)
	f.get("/api/feed", bearerToken(sessions[2])).want(t, 200)
	f.ask(http.MethodDelete, "/api/session?everywhere=true", bearerToken(sessions[1])).want(t, http.StatusNoContent)
	for _, s := range sessions {
		f.get("/api/feed", bearerToken(s)).want(t, 401)
	}
	stream.await("event: closed")
	f.ask(http.MethodDelete, "/api/session?everywhere=true", bearerToken(sessions[1])).want(t, 401)
	for _, s := range []string{reads, writes, bobs, f.session("alice")} {
		if got := f.get("/api/feed", bearerToken(s)).StatusCode; got != 200 {
			t.Errorf("%.8s… is answered %d", s, got)
		}
	}
}

func TestAPasswordIsChangedByWhoKnowsIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	f.setPassword(f.alice)
	token := f.token(f.alice, instance.ScopeWrite)
	change := func(secret, current, next string) response {
		return f.send("/api/me/password", `{"current":"`+current+`","new":"`+next+`"}`, asJSON, bearerToken(secret))
	}
	for _, tt := range []struct {
		secret, current, next string
		status                int
		code                  string
	}{
		{token, "another password", "a new password", 403, "wrong_password"},
		{token, password, "short", 422, "bad_password"},
		{token, password, strings.Repeat("x", 1025), 422, "bad_password"},
		{token, password, `two\nlines of it`, 422, "bad_password"},
		{f.token(f.alice, instance.ScopeRead), password, "a new password", 403, "insufficient_scope"},
		{f.token(f.alice, instance.ScopeLLM), password, "a new password", 403, "insufficient_scope"},
		{f.token(f.bob, instance.ScopeWrite), password, "a new password", 403, "wrong_password"}, // bob has no password
		{"nonsense", password, "a new password", 401, "invalid_token"},
	} {
		if r := change(tt.secret, tt.current, tt.next).want(t, tt.status); r.doc(t)["error"] != tt.code {
			t.Errorf("%q to %q is answered %s, want %s", tt.current, tt.next, r.body, tt.code)
		}
	}
	f.session("alice")
	change(token, password, "a new password").want(t, http.StatusNoContent)
	f.logIn("alice", password).want(t, 401)
	f.logIn("alice", "a new password").want(t, 201)
}

func TestBodiesWithPasswordsAreBounded(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := newFixture(t, func(d *server.Deps) {
		d.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	f.logIn("alice", strings.Repeat("x", 1<<20)).want(t, 413)
	for body, status := range map[string]int{`{"username":"alice"}`: 422, `{"username":"alice","password":7}`: 422, `{"username":"alice","password":"s3cret-s3cret","admin":true}`: 422,
		`{"username":"alice","password":"s3cret-s3cret"`: 400, `{"s3cret-s3cret":1,"s3cret-s3cret":2}`: 400, `"s3cret-s3cret"`: 400, `[]`: 400, `{}`: 422} {
		f.send("/api/session", body, asJSON).want(t, status)
	}
	f.send("/api/session", `{"username":"alice","password":"s3cret-s3cret"}`, header("Content-Type", "application/x-www-form-urlencoded")).want(t, 415)
	f.send("/api/session", `{"username":"alice","password":"s3cret-s3cret"}`, header("Content-Type", "text/plain")).want(t, 415)
	f.send("/api/session?username=alice&password=s3cret-s3cret", "{}", asJSON).want(t, 400)
	f.send("/api/session", "").want(t, 401)
	if n := f.hashings(); n != 0 {
		t.Errorf("%d passwords were hashed", n)
	}
	if strings.Contains(log.String(), "s3cret") {
		t.Errorf("the log holds a password:\n%s", &log)
	}
}

// The log has the address and the user of each login, but never the password. It has no name that
// belongs to no user, because such a name may be a password in the wrong field.
func TestLoginsAreLogged(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := newFixture(t, withRedis(t, redistest.Start(t)), func(d *server.Deps) {
		d.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	f.setPassword(f.alice)
	f.logIn("alice", password, from("192.0.2.7")).want(t, 201)
	f.logIn("alice", "s3cret-s3cret", from("192.0.2.8")).want(t, 401)
	f.logIn("s3cret_s3cret", password, from("[2001:db8::1]")).want(t, 401)
	var lines []string
	for line := range strings.Lines(log.String()) {
		if _, rest, is := strings.Cut(line, "msg=login "); is {
			lines = append(lines, strings.TrimSpace(rest))
		}
	}
	want := []string{"address=192.0.2.7 right=true user=alice", "address=192.0.2.8 right=false user=alice", "address=2001:db8:: right=false"}
	if d := cmp.Diff(want, lines); d != "" || strings.Contains(log.String(), "s3cret") || strings.Contains(log.String(), password) {
		t.Errorf("the log says (-want +got):\n%s\n%s", d, &log)
	}
}

// One address may try only 20 passwords in a row. The server refuses further attempts without
// hashing.
func TestAnAddressTriesOnlySoManyPasswords(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	f.setPassword(f.alice)
	for n := range 25 {
		r := f.logIn(fmt.Sprint("user", n), password, from(fmt.Sprintf("[2001:db8::%d]", n+1))) // these addresses may all belong to one client
		if want := map[bool]int{true: 401, false: 429}[n < 20]; r.StatusCode != want || want == 429 && r.Header.Get("Retry-After") == "" {
			t.Errorf("attempt %d is answered %d, want %d", n, r.StatusCode, want)
		}
	}
	if n := f.hashings(); n != 20 {
		t.Errorf("%d passwords were hashed, want 20", n)
	}
	if n := f.counted("lightweb_logins_total", "limited"); n != 5 {
		t.Errorf("%v attempts are counted as limited, want 5", n)
	}
	f.logIn("alice", password, from("[2001:db8:0:1::1]")).want(t, 201)
}

// Wrong tokens of which a session is asked for count as wrong passwords of their address. Right
// tokens do not count.
func TestAnAddressGuessesOnlySoManyTokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	right := bearerToken(f.token(f.alice, instance.ScopeRead))
	exchange := func(how ...asking) response { return f.send("/api/session", "", how...) }
	guesser, neighbour := from("192.0.2.1"), from("192.0.2.2")
	for range 25 {
		exchange(right, guesser).want(t, 201)
	}
	for n := range 20 {
		exchange(bearerToken(fmt.Sprintf("lw_alice_%043d", n)), guesser).wantCode(t, 401, "invalid_token")
	}
	for _, secret := range []asking{bearerToken("a wrong one"), right} {
		if r := exchange(secret, guesser).wantCode(t, 429, "rate_limited"); r.Header.Get("Retry-After") == "" {
			t.Errorf("the refusal has the headers %v", r.Header)
		}
	}
	f.logIn("alice", password, guesser).want(t, 429)
	exchange(right, neighbour).want(t, 201)
	if wrong, limited := f.counted("lightweb_logins_total", "wrong"), f.counted("lightweb_logins_total", "limited"); wrong != 20 || limited != 3 {
		t.Errorf("%v attempts are counted as wrong and %v as limited, want 20 and 3", wrong, limited)
	}
}

// A user has once signed in from an address. The user can still sign in from there, however many
// networks guess the password. Guesses for a name that nobody has are limited in the same way.
func TestNobodyLocksAUserOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	f.setPassword(f.alice)
	f.setPassword(f.bob)
	for n := range 30 {
		f.logIn("alice", "a wrong guess", from(fmt.Sprintf("198.51.100.%d", n%4+1)))
	}
	home := from("192.0.2.1")
	f.logIn("alice", password, home).want(t, 201)
	statuses := map[string][]int{}
	for _, name := range []string{"alice", "nobody"} {
		for n := range 80 { // each login comes from another network
			statuses[name] = append(statuses[name], f.logIn(name, "a wrong guess", from(fmt.Sprintf("203.%d.%d.1", n, len(name)))).StatusCode)
		}
		if !slices.Contains(statuses[name], 429) || slices.ContainsFunc(statuses[name], func(s int) bool { return s != 401 && s != 429 }) {
			t.Errorf("guesses at %s were answered %v", name, statuses[name])
		}
	}
	f.logIn("alice", password, home).want(t, 201)
	f.logIn("bob", password, from("203.0.113.9")).want(t, 201)
}

// Of many logins at the same time, two are hashed at once and a few wait. The server either checks
// a login or refuses it for now.
func TestManyLoginsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var all sync.WaitGroup
	answers := make(chan response, 60)
	for n := range 60 {
		all.Go(func() {
			answers <- f.logIn(fmt.Sprint("user", n%3), password, from(fmt.Sprintf("203.0.%d.%d", n, n)))
		})
	}
	all.Wait()
	close(answers)
	refused := 0
	for r := range answers {
		switch {
		case r.StatusCode == 503 && r.Header.Get("Retry-After") != "":
			refused++
		case r.StatusCode != 401:
			t.Errorf("a login is answered %d %s", r.StatusCode, r.body)
		}
	}
	if n := f.hashings(); n+refused != 60 {
		t.Errorf("%d of 60 were hashed and %d refused", n, refused)
	}
}

// A hash with outdated parameters is renewed when its user signs in. The renewal ends no session.
func TestAnOldHashIsRenewed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withRedis(t, redistest.Start(t)))
	salt := []byte("0123456789abcdef")
	encode := base64.RawStdEncoding.EncodeToString
	old := fmt.Sprintf("$argon2id$v=19$m=64,t=1,p=1$%s$%s", encode(salt), encode(argon2.IDKey([]byte(password), salt, 1, 64, 1, 32)))
	if err := f.store.Instance.Passwords.Set(t.Context(), f.alice, instance.NewPassword(old)); err != nil {
		t.Fatal(err)
	}
	stored := func() string {
		p, err := f.store.Instance.Passwords.Find(t.Context(), f.alice)
		if err != nil || p == nil {
			t.Fatal(p, err)
		}
		return p.Hash
	}
	f.logIn("alice", "another password").want(t, 401)
	if stored() != old {
		t.Error("a wrong password renewed the hash")
	}
	first := f.session("alice")
	if h := stored(); !strings.HasPrefix(h, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("the hash is %s", h)
	}
	f.get("/api/feed", bearerToken(first)).want(t, 200)
	before := f.hashings()
	f.session("alice")
	if n := f.hashings() - before; n != 1 {
		t.Errorf("%d hashings for a hash of today", n)
	}
}

// Without Redis no session can be stored, so a login with the right password gets 503. A wrong
// password is still refused.
func TestWithoutRedisNobodySignsIn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.setPassword(f.alice)
	if r := f.logIn("alice", password).want(t, 503); r.Header.Get("Retry-After") == "" {
		t.Errorf("%s has no Retry-After", r.body)
	}
	f.logIn("alice", "another password").want(t, 401)
}
