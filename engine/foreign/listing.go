package foreign

import (
	"errors"
	"io"
)

// listReader reads a zip, and fails when more bytes than the field left allows are read before
// isOver is set.
type listReader struct {
	from   io.ReaderAt
	left   int64
	isOver bool // the directory of the zip was read
}

// ReadAt implements io.ReaderAt.
func (l *listReader) ReadAt(b []byte, at int64) (int, error) {
	n, err := l.from.ReadAt(b, at)
	if l.left -= int64(n); l.left < 0 && !l.isOver {
		return 0, errors.New("its listing is larger than 64 MiB")
	}
	return n, err
}
