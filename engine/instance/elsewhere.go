package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/lightweb/lightweb/engine/fault"
)

// checkElsewhere refuses an instance whose databases are on a server that the settings of this
// process do not name, for example because only the service has the setting. On a new private
// server the instance would seem to have no users. An instance that is older than NoteServer is
// recognized by its keys if it has no private server.
func checkElsewhere(c Config) error {
	if c.Database.URL != "" || !isThere(markOf(c)) && (isThere(c.DataDir, "pg") || !isThere(c.DataDir, "instance", "keys")) {
		return nil
	}
	hint := "set database.url, as it is for 'lightweb serve'; if its databases are lost, 'lightweb restore' makes others"
	if private := filepath.Join(c.DataDir, "pg"); isThere(private) {
		hint += "; if they are in " + private + ", remove " + markOf(c)
	}
	return fault.New(fault.Config, "this instance's databases are elsewhere").WithHint(hint)
}

// checkData refuses a server that database.url names if nothing of the instance is there although
// the instance has keys. On that server it would seem to have no users, and other servers would be
// told that all of them are gone.
func (in *Instance) checkData(ctx context.Context) error {
	if in.Config.Database.URL == "" || !isThere(in.Config.DataDir, "instance", "keys") {
		return nil
	}
	if has, err := in.DB.Instance.Origin(ctx); err != nil || has != "" {
		return err
	}
	users, err := in.DB.Instance.Users.All(ctx)
	if err != nil || len(users) > 0 { // an earlier version stored no origin
		return err
	}
	return fault.New(fault.Config, "database.url names a server that has nothing of this instance").
		WithHint("is it the right server? if the instance moves there, 'lightweb restore FILE' brings its databases; if it does not, unset database.url")
}

// NoteServer stores in data_dir whether the databases of the instance are on the server of
// database.url or on the private one, so that later processes without database.url know.
func (in *Instance) NoteServer() error {
	mark := markOf(in.Config)
	if in.Config.Database.URL == "" {
		if err := os.Remove(mark); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("note that the databases are here: %w", err)
		}
		return nil
	}
	if isThere(mark) || !isThere(filepath.Dir(mark)) { // the folder comes with the keys of the instance
		return nil
	}
	if err := os.WriteFile(mark, nil, 0o644); err != nil {
		return fmt.Errorf("note that the databases are elsewhere: %w", err)
	}
	return nil
}

// markOf returns the file that is in data_dir while the databases are on the server of
// database.url.
func markOf(c Config) string { return filepath.Join(c.DataDir, "instance", "elsewhere") }

// isThere reports whether the path exists. It also returns true for a path that cannot be
// examined.
func isThere(path ...string) bool {
	_, err := os.Stat(filepath.Join(path...))
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR)
}
