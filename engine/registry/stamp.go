package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Stamp identifies a version of a file by its metadata, so the content need not be read. If two
// stamps differ, the file may have changed.
type Stamp struct {
	Modified time.Time
	size     int64
	inode    uint64
}

func stampOf(info fs.FileInfo) Stamp {
	s := Stamp{Modified: info.ModTime(), size: info.Size()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode = st.Ino
	}
	return s
}

// Stamps returns the stamps of all users' files. It leaves out files that cannot be examined.
func (r *Registry) Stamps() (map[vocab.Username]Stamp, error) {
	folders, err := os.ReadDir(r.usersDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list %s: %w", filepath.Base(r.usersDir), withoutPath(err))
	}
	all := make(map[vocab.Username]Stamp, len(folders))
	for _, f := range folders {
		u, err := vocab.ParseUsername(f.Name())
		if err != nil { // folders with other names do not belong to users
			continue
		}
		if info, err := os.Stat(r.File(u)); err == nil {
			all[u] = stampOf(info)
		}
	}
	return all, nil
}
