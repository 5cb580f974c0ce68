package archive

import (
	"archive/tar"
	"errors"
	"io"
	"strings"
)

// Limits on the archive of one user that may come from anybody (see OpenBounded).
const (
	maxUserBytes   = 10 << 30 // the bytes of all entries
	maxUserEntries = 1_000_000
	maxUserFiles   = 64 << 20  // the bytes of configurations and keys, which are stored in memory
	maxRatio       = 300       // the greatest ratio of the unpacked bytes to the packed bytes
	freeBytes      = 100 << 20 // unpacked bytes below which the ratio is not checked
)

// spending counts what an archive has cost to read so far.
type spending struct {
	bounded              bool // the limits hold
	entries, bytes, kept int64
	packed               *int64
}

// check refuses an archive that exceeds the limits, if the limits apply to it.
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

// IsSparse reports whether an entry has holes. A reader of a tar makes the bytes of holes itself,
// so the limits on unpacked bytes do not cover them.
func IsSparse(h *tar.Header) bool {
	for name := range h.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// Meter adds to N the number of bytes that are read through it.
type Meter struct {
	From io.Reader
	N    *int64
}

func (m *Meter) Read(b []byte) (int, error) {
	n, err := m.From.Read(b)
	*m.N += int64(n)
	return n, err
}
