package instance

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/lightweb/lightweb/engine/oidc"
)

const maxClientSecret = 4096 // bytes

func (c Config) checkOIDC() error {
	o := c.OIDC
	if o.Issuer == "" && (o.ClientID != "" || o.ClientSecretFile != "") {
		return &SettingError{"oidc.issuer", "no provider is set for oidc.client_id and oidc.client_secret_file", "set it, or none of them"}
	}
	if o.Issuer == "" {
		return nil
	}
	u, err := url.Parse(o.Issuer)
	isHTTP := err == nil && u.Scheme == "http" && (c.Federation.AllowHTTP || isLoopback(u.Hostname()))
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || len(o.Issuer) > oidc.MaxIssuer || u.Scheme != "https" && !isHTTP {
		return &SettingError{"oidc.issuer", fmt.Sprintf("%.100q is not the address of an OpenID provider", o.Issuer), "write it as the provider's documents spell it, such as https://id.example.org/realms/people"}
	}
	if o.ClientID == "" {
		return &SettingError{"oidc.client_id", "it is not set, and oidc.issuer is", "register this server with the provider, and write the id that it gives"}
	}
	return nil
}

// OpenIDCallback is the path to which a provider redirects browsers after sign-in.
const OpenIDCallback = "/api/session/oidc/callback"

// NewOpenID returns the OpenID provider that users may sign in with, or nil when none is
// configured.
func (in *Instance) NewOpenID() (*oidc.Provider, error) {
	o := in.Config.OIDC
	if o.Issuer == "" {
		return nil, nil
	}
	secret, err := in.Config.readClientSecret()
	if err != nil {
		return nil, err
	}
	return oidc.New(oidc.Config{Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: secret, Callback: in.Config.PublicURL + OpenIDCallback, Client: in.Client.Plain(), Now: in.Now}), nil
}

// readClientSecret returns the secret in oidc.client_secret_file. The error is a SettingError.
func (c Config) readClientSecret() (string, error) {
	secret, err := readSecretFile(c.OIDC.ClientSecretFile)
	if err != nil {
		return "", &SettingError{"oidc.client_secret_file", err.Error(), "write the secret that the provider gave into that file, and let this user read it"}
	}
	return secret, nil
}

// readSecretFile reads the secret of a client. The secret is the whole file, without white space
// at both ends.
func readSecretFile(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxClientSecret+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(data))
	if secret == "" || len(data) > maxClientSecret {
		return "", fmt.Errorf("%s is empty, or larger than 4 KiB", path)
	}
	return secret, nil
}
