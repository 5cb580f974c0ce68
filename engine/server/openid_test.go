package server_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
	"github.com/lightweb/lightweb/engine/oidc"
	"github.com/lightweb/lightweb/engine/oidc/oidctest"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/server"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

const openIDPath = "/api/session/oidc"

// openID is a server whose users may sign in at an OpenID provider.
type openID struct {
	*fixture
	provider *oidctest.Provider
	now      time.Time // the time of the server's clock
}

func newOpenID(t *testing.T) *openID {
	o := &openID{now: start}
	o.provider = oidctest.Start(t, func() time.Time { return start })
	o.provider.Callback = origin + openIDPath + "/callback"
	client := transport.New(transport.Config{AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true}, nil, nil)
	t.Cleanup(client.Close)
	o.fixture = newFixture(t, withRedis(t, redistest.Start(t)), func(d *server.Deps) {
		d.CORSOrigins = []string{"https://app.example"}
		d.OpenID = oidc.New(oidc.Config{Issuer: o.provider.URL, ClientID: oidctest.ClientID, ClientSecret: oidctest.ClientSecret, Callback: o.provider.Callback,
			Client: client.Plain(), Now: func() time.Time { return o.now }})
	})
	return o
}

func (o *openID) link(u vocab.Username) {
	o.Helper()
	if err := o.store.Instance.Identities.Link(o.Context(), u, o.provider.URL, o.provider.Subject); err != nil {
		o.Fatal(err)
	}
}

// begin begins a login and signs in at the provider. It returns the address to which the provider
// sends the browser back, and the cookie that the browser sends there.
func (o *openID) begin(how ...asking) (back string, cookie asking) {
	o.Helper()
	r := o.ask(http.MethodGet, openIDPath, how...).want(o, http.StatusSeeOther)
	set, err := http.ParseSetCookie(r.Header.Get("Set-Cookie"))
	if err != nil || set.Name != "__Host-lw_oidc" || !set.HttpOnly || !set.Secure || set.SameSite != http.SameSiteLaxMode || set.Path != "/" || set.MaxAge != 600 || r.Header.Get("Cache-Control") != "private, no-store" {
		o.Errorf("the login begins with %v (%v), %v", set, err, r.Header)
	}
	return o.letIn(r.Header.Get("Location")), header("Cookie", set.Name+"="+set.Value)
}

// letIn opens the provider's page at location. It returns the path to which the provider
// redirects.
func (o *openID) letIn(location string) string {
	o.Helper()
	request, err := http.NewRequestWithContext(o.Context(), http.MethodGet, location, nil)
	if err != nil {
		o.Fatal(err)
	}
	r, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		o.Fatal(err)
	}
	if err := r.Body.Close(); err != nil {
		o.Fatal(err)
	}
	if r.StatusCode != http.StatusFound || !strings.HasPrefix(r.Header.Get("Location"), o.provider.Callback) {
		o.Fatalf("the provider answers %d and sends the browser to %q", r.StatusCode, r.Header.Get("Location"))
	}
	return strings.TrimPrefix(r.Header.Get("Location"), origin)
}

// wantCode fails the test unless the response has the given status and error code.
func (r response) wantCode(t testing.TB, status int, code string) response {
	t.Helper()
	if r.want(t, status); !strings.Contains(string(r.body), `"error":"`+code+`"`) {
		t.Errorf("the answer is %s, want the code %s", r.body, code)
	}
	return r
}

// A user who signs in at the provider gets the same session as with a password.
func TestAnIdentityMakesASession(t *testing.T) {
	t.Parallel()
	o := newOpenID(t)
	o.link(o.alice)
	back, cookie := o.begin()
	r := o.get(back, cookie).want(t, http.StatusOK)
	var made struct {
		Session string
		Scopes  []string
	}
	r.decode(t, &made)
	if !strings.HasPrefix(made.Session, "lws_alice_") || strings.Join(made.Scopes, " ") != "read write" || r.Header.Get("Cache-Control") != "private, no-store" || !strings.Contains(r.Header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("a session is %+v, %v", made, r.Header)
	}
	o.get("/api/feed", bearerToken(made.Session)).want(t, 200)
	o.send("/api/activity", `{"action":"CreateNote","params":{}}`, asJSON, bearerToken(made.Session)).want(t, 201)
	// a login can be completed only once
	o.get(back, cookie).wantCode(t, http.StatusUnauthorized, "login_not_proven")
	second, again := o.begin()
	o.get(second, again).want(t, http.StatusOK).decode(t, &made)
	o.ask(http.MethodDelete, "/api/session?everywhere=true", bearerToken(made.Session)).want(t, http.StatusNoContent)
	o.get("/api/feed", bearerToken(made.Session)).want(t, 401)
	third, last := o.begin()
	o.get(third, last).want(t, http.StatusOK).decode(t, &made)
	if err := o.store.Instance.Identities.Unlink(t.Context(), o.alice, o.provider.URL, o.provider.Subject); err != nil {
		t.Fatal(err)
	}
	o.get("/api/feed", bearerToken(made.Session)).want(t, 401)
}

// A page of an allowed origin begins a login. At the end the browser returns to that page. The
// session is in the fragment of the address, which no server sees.
func TestABrowserIsSentBackToAPageThatMayUseTheAPI(t *testing.T) {
	t.Parallel()
	o := newOpenID(t)
	o.link(o.alice)
	const page = "https://app.example/in?x=1"
	r := o.get(openIDPath+"?page="+url.QueryEscape(page)).want(t, http.StatusSeeOther)
	set, err := http.ParseSetCookie(r.Header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	end := o.get(o.letIn(r.Header.Get("Location")), header("Cookie", set.Name+"="+set.Value)).want(t, http.StatusSeeOther)
	session, is := strings.CutPrefix(end.Header.Get("Location"), page+"#session=")
	if !is || end.Header.Get("Referrer-Policy") != "no-referrer" || len(end.body) != 0 {
		t.Errorf("the browser is sent to %v", end.Header)
	}
	o.get("/api/feed", bearerToken(session)).want(t, 200)
	for _, bad := range []string{"https://evil.example/", "https://app.example.evil.example/", "https://app.example@evil.example/", "//app.example/", "https://app.example/#x", "javascript:alert(1)", ""} {
		o.get(openIDPath+"?page="+url.QueryEscape(bad)).wantCode(t, http.StatusBadRequest, "bad_query")
	}
}

// All logins whose identity belongs to no active user get the same answer: the identity is
// unknown, or its user is suspended or deleted.
func TestNobodyIsToldWhoIsLinked(t *testing.T) {
	t.Parallel()
	o := newOpenID(t)
	back, cookie := o.begin()
	first := o.get(back, cookie).wantCode(t, http.StatusUnauthorized, "not_linked")
	o.link(o.alice)
	if err := o.store.Instance.Users.SetState(t.Context(), o.alice, instance.UserSuspended); err != nil {
		t.Fatal(err)
	}
	back, cookie = o.begin()
	second := o.get(back, cookie).wantCode(t, http.StatusUnauthorized, "not_linked")
	if strings.Contains(string(second.body), "alice") || len(first.body) != len(second.body) {
		t.Errorf("an unknown one is answered %s, a suspended one %s", first.body, second.body)
	}
	if wrong := o.counted("lightweb_logins_total", "wrong"); wrong != 2 {
		t.Errorf("%v wrong logins are counted", wrong)
	}
}

// Only the browser that began a login can complete it, within ten minutes and with unchanged
// parameters.
func TestALoginIsOneBrowsers(t *testing.T) {
	t.Parallel()
	o := newOpenID(t)
	o.link(o.alice)
	replaced := func(back, name, value string) string {
		u, err := url.Parse(back)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set(name, value)
		return u.Path + "?" + q.Encode()
	}
	back, _ := o.begin()
	o.get(back).wantCode(t, http.StatusUnauthorized, "login_not_proven")
	back, _ = o.begin()
	_, others := o.begin()
	o.get(back, others).wantCode(t, http.StatusUnauthorized, "login_not_proven")
	for name, value := range map[string]string{"state": "another", "code": "another", "iss": "https://else.example", "error": "access_denied"} {
		back, cookie := o.begin(from("192.0.2.7"))
		o.get(replaced(back, name, value), cookie).wantCode(t, http.StatusUnauthorized, "login_not_proven")
	}
	back, cookie := o.begin(from("192.0.2.9"))
	o.now = start.Add(11 * time.Minute)
	o.get(back, cookie).wantCode(t, http.StatusUnauthorized, "login_not_proven")
}

// A false token signs nobody in, whether it comes from the provider or from an attacker.
func TestATokenThatProvesNobodyIsRefused(t *testing.T) {
	t.Parallel()
	o := newOpenID(t)
	o.link(o.alice)
	lie := func(name string, value any) func() {
		return func() { o.provider.Lie = func(c oidctest.Claims) { c[name] = value } }
	}
	sign := func(alg jose.SignatureAlgorithm, key any) func() {
		return func() { o.provider.Sign = func(c oidctest.Claims) string { return oidctest.Signed(alg, key, c) } }
	}
	for name, lies := range map[string]func(){
		"nonce":         lie("nonce", "another"),
		"no nonce":      lie("nonce", nil),
		"audience":      lie("aud", "somebody else"),
		"two audiences": lie("aud", []string{oidctest.ClientID, "somebody else"}),
		"party":         lie("azp", "somebody else"),
		"issuer":        lie("iss", "https://else.example"),
		"expired":       lie("exp", start.Add(-time.Minute).Unix()),
		"no end":        lie("exp", nil),
		"not yet":       lie("nbf", start.Add(time.Hour).Unix()),
		"no subject":    lie("sub", nil),
		"long subject":  lie("sub", strings.Repeat("x", oidc.MaxSubject+1)),
		"another key":   sign(jose.ES256, oidctest.NewKey(t)),
		"shared secret": sign(jose.HS256, []byte(oidctest.ClientSecret+"of 32 bytes or more")),
		"alg none": func() {
			o.provider.Sign = func(c oidctest.Claims) string {
				body, _ := json.Marshal(c)
				return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(body) + "."
			}
		},
		"no token": func() { o.provider.Sign = func(oidctest.Claims) string { return "" } },
		"noise":    func() { o.provider.Sign = func(oidctest.Claims) string { return "x.y.z" } },
	} {
		o.provider.Lie, o.provider.Sign = nil, nil
		lies()
		back, cookie := o.begin(from("192.0.2." + string('1'+rune(len(name)%9))))
		if r := o.get(back, cookie, from("198.51.100."+string('1'+rune(len(name)%9)))); r.StatusCode != http.StatusUnauthorized || !strings.Contains(string(r.body), `"login_not_proven"`) {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	o.provider.Lie, o.provider.Sign = func(c oidctest.Claims) { c["azp"], c["aud"] = oidctest.ClientID, []string{"x", oidctest.ClientID} }, nil
	back, cookie := o.begin(from("203.0.113.1"))
	o.get(back, cookie, from("203.0.113.1")).want(t, http.StatusOK)
}

// If the provider does not answer, the login gets 503. The server asks the provider again after a
// pause.
func TestAProviderThatIsAway(t *testing.T) {
	t.Parallel()
	o := newOpenID(t)
	away := newFixture(t, func(d *server.Deps) {
		client := transport.New(transport.Config{AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true}, nil, nil)
		t.Cleanup(client.Close)
		d.OpenID = oidc.New(oidc.Config{Issuer: "http://127.0.0.1:1", ClientID: "x", Callback: o.provider.Callback, Client: client.Plain(), Now: d.Now})
	})
	if r := away.get(openIDPath).wantCode(t, http.StatusServiceUnavailable, "oidc_unreachable"); r.Header.Get("Retry-After") == "" || strings.Contains(string(r.body), "127.0.0.1") {
		t.Errorf("an unreachable provider is answered %v %s", r.Header, r.body)
	}
	guarded := newFixture(t, func(d *server.Deps) { // the address guard also applies to requests to a provider
		client := transport.New(transport.Config{}, nil, nil)
		t.Cleanup(client.Close)
		d.OpenID = oidc.New(oidc.Config{Issuer: o.provider.URL, ClientID: "x", Callback: o.provider.Callback, Client: client.Plain(), Now: d.Now})
	})
	guarded.get(openIDPath).wantCode(t, http.StatusServiceUnavailable, "oidc_unreachable")
	o.provider.Away = true
	o.get(openIDPath).wantCode(t, http.StatusServiceUnavailable, "oidc_unreachable")
	o.provider.Away = false
	o.get(openIDPath).wantCode(t, http.StatusServiceUnavailable, "oidc_unreachable") // the server waits before it asks the provider again
	o.now = start.Add(time.Minute)
	o.get(openIDPath).want(t, http.StatusSeeOther)
	newFixture(t).get(openIDPath).wantCode(t, http.StatusNotFound, "no_provider")
}

// Steps of OpenID logins and tries of passwords share one limit.
func TestStepsOfLoginsAreBounded(t *testing.T) {
	t.Parallel()
	o := newOpenID(t)
	burst := policy.Logins.Rate.Burst
	for range burst {
		o.get(openIDPath, from("192.0.2.1")).want(t, http.StatusSeeOther)
	}
	for _, path := range []string{openIDPath, openIDPath + "/callback?state=x&code=y"} {
		if r := o.get(path, from("192.0.2.1")).wantCode(t, http.StatusTooManyRequests, "rate_limited"); r.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %v", path, r.Header)
		}
	}
	o.logIn("alice", "a guess", from("192.0.2.1")).want(t, http.StatusTooManyRequests)
	o.get(openIDPath, from("198.51.100.1")).want(t, http.StatusSeeOther)
}
