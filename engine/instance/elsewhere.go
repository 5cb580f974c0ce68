package instance

import (
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
	return fault.New(fault.Config, "this instance's databases are elsewhere").
		WithHint("set database.url, as it is for 'lightweb serve'; if its databases are lost, 'lightweb restore' makes others")
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
