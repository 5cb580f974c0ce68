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
// profiles. The fault is Config and lists the errors of all files. CheckFiles opens no database,
// so it treats every folder in users_dir that this account may enter as a user's. It skips
// folders that it may not enter, because below /home these are the homes of people.
func CheckFiles(c Config) error {
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
