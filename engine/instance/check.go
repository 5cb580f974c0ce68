package instance

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// CheckFiles checks the files that may change while the engine serves: the policy and the users'
// profiles. The fault is Config and says what is wrong with all of them. CheckFiles opens no
// database, so it takes every folder in users_dir that this account may enter for a user's.
// Folders that it may not enter, below /home, are homes of people.
func CheckFiles(c Config) error {
	r := registry.New(c.DataDir, c.UsersDir, slog.New(slog.DiscardHandler))
	errs := []error{r.Problem(vocab.Username{})}
	folders, err := os.ReadDir(c.UsersDir)
	if !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	for _, f := range folders {
		if u, err := vocab.ParseUsername(f.Name()); err == nil { // other names are not of users
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
