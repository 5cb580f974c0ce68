package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/lightweb/lightweb/engine/fault"
)

// findFile returns the first configuration file that exists. A file that --config or the
// environment names must exist.
func (r *configReader) findFile() (name, content string, err error) {
	places, asked := []string{"./lightweb.toml", "/etc/lightweb/lightweb.toml"}, false
	for _, f := range []string{r.env.find(configEnv), r.file} {
		if f != "" {
			places, asked = []string{f}, true
		}
	}
	for _, name := range places {
		b, err := r.readPlace(name, asked)
		if !asked && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) && !filepath.IsAbs(name)) {
			continue // the account that serves may stand in a folder that is not its own
		}
		if err != nil && fault.Of(err) == nil {
			err = fault.Wrap(fault.Config, "cannot read the configuration file "+name+": "+reason(err), err).WithHint("check --config and " + configEnv)
		}
		if err != nil {
			return "", "", err
		}
		return name, string(b), nil
	}
	return "", "", nil
}

// readPlace reads a configuration file. The parameter asked says whether the operator named it.
func (r *configReader) readPlace(name string, asked bool) ([]byte, error) {
	flags, doubts := os.O_RDONLY, !asked && !filepath.IsAbs(name) && os.Geteuid() == 0
	if doubts {
		flags |= syscall.O_NOFOLLOW | syscall.O_NONBLOCK // a link could lead to any file of root's, and a pipe would keep root waiting
	}
	f, err := os.OpenFile(name, flags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if doubts {
		if err := r.env.checkOwner(name, f); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(f)
}

// checkOwner refuses a file of the working folder that somebody other than root and the caller of
// sudo can change. Root may stand in a folder of anybody, such as /tmp, and the settings say which
// files root makes and gives away.
func (env environment) checkOwner(name string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t) // Stat of an open file returns this type
	if info.Mode().IsRegular() && env.mayInstructRoot(owner.Uid, owner.Gid, info.Mode()) {
		return nil
	}
	return fault.New(fault.Config, fmt.Sprintf("root does not obey %s, which user %d and group %d can change (mode %#o)", name, owner.Uid, owner.Gid, info.Mode().Perm())).
		WithHint("name it if it is yours: --config " + name)
}

// mayInstructRoot reports whether root obeys a file with this owner, group and mode that no
// operator has named: only root and the caller of sudo, and their own groups, can change it.
func (env environment) mayInstructRoot(uid, gid uint32, mode fs.FileMode) bool {
	isOurs := func(id uint32, caller string) bool {
		return id == 0 || strconv.FormatUint(uint64(id), 10) == env.find(caller)
	}
	return isOurs(uid, "SUDO_UID") && (mode&0o020 == 0 || isOurs(gid, "SUDO_GID")) && mode&0o002 == 0
}

// reason returns why a file could not be used, without the name of the file, which the caller's
// message has already.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err.Error()
	}
	return err.Error()
}
