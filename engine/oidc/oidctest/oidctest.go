// Package oidctest is an OpenID provider on loopback, for tests. It signs every browser in as the
// same subject. Tests can make it lie.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// These are the id and the secret of the only client that the provider accepts.
const (
	ClientID     = "lightweb of example.org"
	ClientSecret = "kept: a secret/of both"
)

// Claims are the content of a token.
type Claims map[string]any

// Provider is a running provider.
type Provider struct {
	URL      string // the provider's issuer
	Callback string // the only address to which the provider redirects browsers
	Subject  string // the subject as which every browser is signed in

	Away bool // if true, the provider does not serve its description
	Now  func() time.Time
	Lie  func(Claims)        // changes the claims of later tokens; may be nil
	Sign func(Claims) string // makes later tokens; if nil, Signed makes them with the provider's key

	key   *ecdsa.PrivateKey
	mu    sync.Mutex
	codes map[string]url.Values // the queries of logins; the keys are the codes that no client has used yet
}

// Start starts a provider that ends with the test.
func Start(t testing.TB, now func() time.Time) *Provider {
	t.Helper()
	p := &Provider{Subject: "248289761001", Now: now, key: NewKey(t), codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.configure)
	mux.HandleFunc("GET /keys", p.showKeys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.exchange)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	p.URL = srv.URL
	return p
}

// NewKey makes a key to sign with.
func NewKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Signed returns a token with the claims c. The key signs it.
func Signed(alg jose.SignatureAlgorithm, key any, c Claims) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "1"))
	if err != nil {
		panic(err)
	}
	body, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		panic(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return token
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}

func (p *Provider) configure(w http.ResponseWriter, _ *http.Request) {
	if p.Away {
		http.Error(w, "not now", http.StatusBadGateway)
		return
	}
	answer(w, http.StatusOK, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}})
}

func (p *Provider) showKeys(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: p.key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
}

// authorize signs the browser in without asking it, and redirects it back.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != ClientID || q.Get("redirect_uri") != p.Callback || q.Get("scope") != "openid" ||
		q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || q.Get("state") == "" || q.Get("nonce") == "" {
		http.Error(w, "a bad request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = q
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}, "session_state": {"of the provider"}}
	http.Redirect(w, r, p.Callback+"?"+back.Encode(), http.StatusFound)
}

// exchange returns a token for a code. It accepts each code once, and only from the client that
// shows its secret and the verifier.
func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	asked, is := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	p.mu.Unlock()
	id, secret, _ := r.BasicAuth() // RFC 6749 §2.3.1 requires both to be encoded as in a form
	challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case id != url.QueryEscape(ClientID) || secret != url.QueryEscape(ClientSecret):
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
	case !is || r.FormValue("grant_type") != "authorization_code" || r.FormValue("redirect_uri") != p.Callback ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge"):
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
	default:
		answer(w, http.StatusOK, map[string]any{"access_token": "unused", "token_type": "Bearer", "id_token": p.token(asked.Get("nonce"))})
	}
}

func (p *Provider) token(nonce string) string {
	now := p.Now()
	c := Claims{"iss": p.URL, "sub": p.Subject, "aud": ClientID, "nonce": nonce, "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	if p.Lie != nil {
		p.Lie(c)
	}
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	if p.Sign != nil {
		return p.Sign(c)
	}
	return Signed(jose.ES256, p.key, c)
}
