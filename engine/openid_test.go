package engine_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/oidc/oidctest"
)

// The operator has linked a user with an OpenID provider. The user signs in at the provider as a
// browser does, even after the engine was killed. When the link is removed, its sessions end.
func TestAUserSignsInByAnOpenIDProvider(t *testing.T) {
	t.Parallel()
	provider := oidctest.Start(t, time.Now)
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(oidctest.ClientSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	i := enginetest.Start(t, "LIGHTWEB_OIDC_ISSUER="+provider.URL, "LIGHTWEB_OIDC_CLIENT_ID="+oidctest.ClientID, "LIGHTWEB_OIDC_CLIENT_SECRET_FILE="+file)
	provider.Callback = i.URL + "/api/session/oidc/callback"
	alice := i.CreateUser(t, "alice")
	i.CreateUser(t, "bob")
	browser(t, i).want(t, http.StatusUnauthorized)
	runAll(t, i, []command{
		{"user link-oidc alice", 64, "SUBJECT"}, {"user link-oidc nobody " + provider.Subject, 67, ""},
		{"user link-oidc alice " + provider.Subject, 0, ""}, {"user link-oidc alice " + provider.Subject, 0, ""}, {"user link-oidc bob " + provider.Subject, 73, "linked to alice"},
		{"user link-oidc bob " + provider.Subject + " --remove", 66, ""},
	})
	if got := i.Run(t, "user", "link-oidc", "alice", "--list", "--json"); got.Code != 0 || !strings.Contains(got.Stdout, provider.Subject) || !strings.Contains(got.Stdout, provider.URL) {
		t.Errorf("the identities of alice are %d %s", got.Code, got.Stdout)
	}
	first := browser(t, i).want(t, http.StatusOK)
	used := func(s signedIn) int {
		return (&enginetest.User{Home: i, Name: alice.Name, Token: s.Session}).Ask(t, http.MethodGet, "/api/me", nil).Status
	}
	if status := used(first); status != http.StatusOK || !strings.HasPrefix(first.Session, "lws_"+alice.Name+"_") {
		t.Errorf("the session %+v is answered %d", first, status)
	}
	i.Kill()
	i.Start(t)
	second := browser(t, i).want(t, http.StatusOK)
	runAll(t, i, []command{{"user link-oidc alice " + provider.Subject + " --remove", 0, ""}})
	if status := used(second); status != http.StatusUnauthorized {
		t.Errorf("a session of an identity that was taken away is answered %d", status)
	}
	browser(t, i).want(t, http.StatusUnauthorized)
}

// signedIn is the result of a browser's login.
type signedIn struct {
	status  int
	Session string
}

func (s signedIn) want(t *testing.T, status int) signedIn {
	t.Helper()
	if s.status != status {
		t.Fatalf("the login was answered %d, want %d", s.status, status)
	}
	return s
}

// browser signs in at the provider with the cookies and redirects of a browser.
func browser(t *testing.T, i *enginetest.Instance) (s signedIn) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := (&http.Client{Jar: jar}).Get(i.URL + "/api/session/oidc")
	if err != nil {
		t.Fatal(err)
	}
	s.status = r.StatusCode
	if err := errors.Join(json.NewDecoder(r.Body).Decode(&s), r.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return s
}

// config check names the setting that cannot be used.
func TestAnOpenIDProviderIsConfiguredWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings []string
		key      string
	}{
		{[]string{"LIGHTWEB_OIDC_CLIENT_ID=x"}, "oidc.issuer"},
		{[]string{"LIGHTWEB_OIDC_ISSUER=id.example.org", "LIGHTWEB_OIDC_CLIENT_ID=x"}, "oidc.issuer"},
		{[]string{"LIGHTWEB_OIDC_ISSUER=https://id.example.org/?x=1", "LIGHTWEB_OIDC_CLIENT_ID=x"}, "oidc.issuer"},
		{[]string{"LIGHTWEB_OIDC_ISSUER=https://id.example.org"}, "oidc.client_id"},
	} {
		i := enginetest.Make(t, tt.settings...)
		if got := i.Run(t, "config", "check"); got.Code != 78 || !strings.Contains(got.Stderr, tt.key) {
			t.Errorf("%q ends with %d %s, want 78 and %s", tt.settings, got.Code, got.Stderr, tt.key)
		}
	}
}
