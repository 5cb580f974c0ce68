package foreign

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
)

// Limits on an archive.
const (
	maxBytes  = 10 << 30 // of all entries together, unpacked
	maxNames  = 1_000_000
	maxRatio  = 300       // of unpacked bytes to packed bytes
	freeBytes = 100 << 20 // unpacked bytes up to which the ratio is not checked

	maxListing = 64 << 20 // bytes of the directory of a zip, all of which is held in memory
)

// ReadArchive calls the function visit for each document and picture in the top folder of an
// archive, which is a zip or a gzipped tar. Content that visit does not read is skipped. The fault
// is Invalid if the archive is damaged, has links, devices or paths that lead elsewhere, or
// exceeds the limits above.
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
	e := entries{ctx: ctx, visit: visit, seen: map[[sha256.Size]byte]bool{}}
	if bytes.Equal(head, []byte("PK")) {
		return e.readZip(f)
	}
	return e.readTar(f)
}

// entries reads and counts the entries of an archive.
type entries struct {
	ctx          context.Context
	visit        func(name string, content io.Reader) error
	names, bytes int64
	packed       int64                      // bytes read of the archive file; all for a zip
	seen         map[[sha256.Size]byte]bool // digests of the names of visited entries
}

// add counts an entry. It refuses too many entries, and an entry with an invalid type, path or
// size. It also refuses a second document or picture with the same name.
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
	if digest := sha256.Sum256([]byte(name)); isRead(name) && e.seen[digest] {
		return damagedFault(fmt.Errorf("%.80q is in it twice", name))
	} else if isRead(name) {
		e.seen[digest] = true
	}
	return nil
}

// spend counts unpacked bytes, and refuses more than the limits permit.
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

// isRead reports, by the name of an entry, whether the entry is a document or a picture in the
// top folder. Other entries are not visited.
func isRead(name string) bool {
	extension := path.Ext(name)
	return !strings.Contains(name, "/") && (extension == ".json" || extension == ".png" || extension == ".jpg" || extension == ".jpeg" || extension == ".gif" || extension == ".webp")
}

// readZip reads a zip. Only entries that are visited are unpacked.
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
		if err := errors.Join(e.hand(entry.Name, &spender{e: e, from: content}), content.Close()); err != nil {
			return err
		}
	}
	return nil
}

// hand visits an entry if it is a document or a picture (see isRead). Then it reads the entry to
// its end, because only the end shows that the entry is complete.
func (e *entries) hand(name string, content *spender) error {
	if isRead(name) {
		if err := e.visit(name, content); err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, content)
	return err
}

// spender reads unpacked bytes and counts them. It fails once the limits are exceeded.
type spender struct {
	e         *entries
	from      io.Reader
	isCounted bool // from counts the bytes itself
}

func (s *spender) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	if !s.isCounted {
		if over := s.e.spend(int64(n)); over != nil {
			return n, over
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = readFault(err)
	}
	return n, err
}

// readFault returns err as it is if err is a fault or the end of a context, because a spender
// returns such errors. For any other error it returns the result of damagedFault.
func readFault(err error) error {
	if fault.Of(err) != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return damagedFault(err)
}
