package foreign

import (
	"errors"
	"io"
)

// listReader reads a zip, and so much of its listing and no more.
type listReader struct {
	from   io.ReaderAt
	left   int64
	isOver bool // the listing was read
}

// ReadAt is io.ReaderAt's.
func (l *listReader) ReadAt(b []byte, at int64) (int, error) {
	n, err := l.from.ReadAt(b, at)
	if l.left -= int64(n); l.left < 0 && !l.isOver {
		return 0, errors.New("its listing is larger than 64 MiB")
	}
	return n, err
}
