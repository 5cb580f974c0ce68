package instance

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// CheckFiles checks the files that serve reads: those of CheckCredentials, the policy, and the
// users' profiles. The fault is Config and lists the errors of all policies and profiles.
// CheckFiles opens no database, so it treats every folder in users_dir that this account may enter
// as a user's. It skips folders that it may not enter, because below /home these are the homes of
// people.
func CheckFiles(c Config) error {
	if err := c.CheckCredentials(); err != nil {
		return err
	}
	r := registry.New(c.DataDir, c.UsersDir, slog.New(slog.DiscardHandler))
	errs := []error{r.Problem(vocab.Username{})}
	folders, err := os.ReadDir(c.UsersDir)
	if !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, f := range folders {
		if u, err := vocab.ParseUsername(f.Name()); err == nil { // a folder with another name belongs to no user
			if _, err := os.Stat(r.File(u)); !errors.Is(err, fs.ErrPermission) {
				errs = append(errs, r.Problem(u))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fault.New(fault.Config, err.Error()).WithHint("mend the file, or remove it for the defaults")
	}
	return nil
}

// CheckCredentials reads the files that tls.cert, tls.key and oidc.client_secret_file name. The
// fault is Config if one of them cannot be used.
func (c Config) CheckCredentials() error {
	if c.TLS.Cert != "" {
		if _, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key); err != nil {
			return fault.New(fault.Config, "tls.cert and tls.key: "+err.Error()).WithHint("both are PEM files that lightweb may read, and belong together")
		}
	}
	_, err := c.readClientSecret()
	return err
}
