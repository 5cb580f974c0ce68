package foreign

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Bounds of an archive.
const (
	maxBytes  = 10 << 30 // of all entries
	maxNames  = 1_000_000
	maxRatio  = 300       // of its bytes to those that they are packed in
	freeBytes = 100 << 20 // for which the ratio does not matter

	maxListing = 64 << 20 // bytes in which a zip says what it holds: all of that is kept in memory
)

// ReadArchive hands over the documents and pictures that lie at the top of an archive, a zip or a
// tar packed with gzip; what visit leaves unread is skipped. The fault is Invalid for what has
// links, devices, a path that leads elsewhere, or more in it than anybody writes of one user.
func ReadArchive(ctx context.Context, path string, visit func(name string, content io.Reader) error) error {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 2)
	if _, err := f.ReadAt(head, 0); err != nil {
		return damagedFault(err)
	}
	e := entries{ctx: ctx, visit: visit}
	if bytes.Equal(head, []byte("PK")) {
		return e.readZip(f)
	}
	return e.readTar(f)
}

// entries are those of an archive, as they are read.
type entries struct {
	ctx          context.Context
	visit        func(name string, content io.Reader) error
	names, bytes int64
	packed       int64 // bytes of the file that were read
}

// add counts an entry, and refuses one that no program should write.
func (e *entries) add(name string, mode fs.FileMode, size int64) error {
	clean := strings.TrimSuffix(name, "/")
	switch e.names++; {
	case e.names > maxNames:
		return damagedFault(errors.New("it has over a million entries"))
	case !mode.IsRegular() && !mode.IsDir():
		return damagedFault(fmt.Errorf("%.80q is a link, or no file", name))
	case clean == "" || path.Clean("/"+clean) != "/"+clean || strings.ContainsAny(clean, "\\\x00") || strings.HasPrefix(clean, "/"):
		return damagedFault(fmt.Errorf("%.80q is a path that leads elsewhere", name))
	case size < 0 || size > maxBytes:
		return damagedFault(errors.New("it holds over 10 GiB"))
	}
	return nil
}

// spend counts bytes that were unpacked.
func (e *entries) spend(n int64) error {
	switch e.bytes += n; {
	case e.ctx.Err() != nil:
		return e.ctx.Err()
	case e.bytes > maxBytes:
		return damagedFault(errors.New("it holds over 10 GiB"))
	case e.bytes > freeBytes && e.bytes/maxRatio > e.packed:
		return damagedFault(errors.New("it holds 300 times what it is packed in"))
	}
	return nil
}

// isRead reports whether an entry is one that is read at all.
func isRead(name string) bool {
	extension := path.Ext(name)
	return !strings.Contains(name, "/") && (extension == ".json" || extension == ".png" || extension == ".jpg" || extension == ".jpeg" || extension == ".gif" || extension == ".webp")
}

// readZip reads a zip. Entries that are not read are not unpacked either.
func (e *entries) readZip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	list := &listReader{from: f, left: maxListing}
	z, err := zip.NewReader(list, info.Size())
	if err != nil {
		return damagedFault(err)
	}
	list.isOver = true
	e.packed = info.Size()
	for _, entry := range z.File {
		if err := e.add(entry.Name, entry.Mode(), int64(min(entry.UncompressedSize64, maxBytes+1))); err != nil {
			return err
		}
	}
	for _, entry := range z.File {
		if !isRead(entry.Name) {
			continue
		}
		content, err := entry.Open()
		if err != nil {
			return damagedFault(err)
		}
		if err := errors.Join(e.hand(entry.Name, content), content.Close()); err != nil {
			return err
		}
	}
	return nil
}

// hand hands over an entry, and reads what is left of it: only then is it known to be whole.
func (e *entries) hand(name string, content io.Reader) error {
	spent := &spender{e, content}
	if isRead(name) {
		if err := e.visit(name, spent); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, spent)
	return err
}

// spender reads what is unpacked, and stops when it is too much.
type spender struct {
	e    *entries
	from io.Reader
}

func (s *spender) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	if over := s.e.spend(int64(n)); over != nil {
		return n, over
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = damagedFault(err)
	}
	return n, err
}
