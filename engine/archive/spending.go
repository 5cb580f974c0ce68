package archive

import (
	"errors"
	"io"
)

// Bounds of the archive of one user: it may come from anybody.
const (
	maxUserBytes   = 10 << 30 // of all entries
	maxUserEntries = 1_000_000
	maxUserFiles   = 64 << 20  // of configurations and keys, which are kept in memory
	maxRatio       = 300       // of its bytes to those that they are packed in
	freeBytes      = 100 << 20 // for which the ratio does not matter
)

// spending is what reading an archive has cost so far.
type spending struct {
	bounded              bool // the archive is of one user
	entries, bytes, kept int64
	packed               *int64
}

// check refuses an archive that costs more than any that lightweb writes.
func (s *spending) check() error {
	switch {
	case !s.bounded:
		return nil
	case s.entries > maxUserEntries:
		return damagedFault(errors.New("it has over a million entries"))
	case s.bytes > maxUserBytes:
		return damagedFault(errors.New("it holds over 10 GiB"))
	case s.kept > maxUserFiles:
		return damagedFault(errors.New("its configurations and keys are over 64 MiB"))
	case s.bytes > freeBytes && s.bytes/maxRatio > *s.packed:
		return damagedFault(errors.New("it holds 300 times what it is packed in"))
	}
	return nil
}

// Meter adds to N what is read through it, in bytes.
type Meter struct {
	From io.Reader
	N    *int64
}

func (m *Meter) Read(b []byte) (int, error) {
	n, err := m.From.Read(b)
	*m.N += int64(n)
	return n, err
}
