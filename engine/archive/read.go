package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/lightweb/lightweb/engine/fault"
)

const (
	// MaxFile is the size of the largest file in an archive, in bytes. That is the policy of an
	// instance, which may have a million domains.
	MaxFile = 64 << 20

	maxEntry = 16 << 20  // bytes of one entry that is no Document, nor the policy, nor the sums
	maxSums  = 256 << 20 // bytes of the sums, which is enough for two million entries
)

// File is a configuration or a key in an archive.
type File struct {
	Name Name
	Data []byte
}

// Reader is an archive whose sums were verified.
type Reader struct {
	Manifest Manifest
	Files    []File // the configurations and keys

	f       *os.File
	bounded bool // the limits on the archive of one user hold
}

// Open reads the whole archive and verifies its sums. The fault is NotFound when the file cannot
// be opened, Invalid when it is no archive or is damaged, and Config when a newer lightweb wrote
// it. The sums reveal decay and truncation; they do not show who wrote the archive.
func Open(ctx context.Context, path string) (*Reader, error) { return openFile(ctx, path, false) }

// OpenBounded is Open for an archive that may come from anybody. It also refuses an archive of one
// user that exceeds the limits. So reading an accepted archive costs no more than reading the
// archive of a user of ordinary size.
func OpenBounded(ctx context.Context, path string) (*Reader, error) { return openFile(ctx, path, true) }

func openFile(ctx context.Context, path string, bounded bool) (*Reader, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // if path is a pipe, this does not wait for a writer
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, "the archive "+path+" cannot be read", err).WithHint("is it there, and may you read it?")
	}
	r := &Reader{f: f, bounded: bounded}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.New(fault.Invalid, path+" is not a file").WithHint("an archive is read twice: write it to a file first")
	}
	if err == nil {
		err = r.verifyAll(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.f.Close() }

// Each calls the function visit with the shapes, rows, pictures and documents in the order in
// which they were written. It skips the content that visit leaves unread.
func (r *Reader) Each(ctx context.Context, visit func(n Name, content io.Reader) error) error {
	s, err := r.openStream(ctx)
	if err != nil {
		return err
	}
	if _, err = s.nextEntry(); err != nil { // the manifest
		return err
	}
	s.spent.bounded = r.bounded && !r.Manifest.Whole
	for {
		h, err := s.nextEntry()
		if err != nil || h.Name == sumsName {
			return err
		}
		n, _, err := parseName(h.Name)
		if err != nil {
			return err
		}
		if n.Kind == Config || n.Kind == Key {
			continue
		}
		content := &content{s: s, name: n}
		if err := visit(n, content); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return err
		}
	}
}

// verifyAll reads the whole archive, and keeps the manifest, the configurations and the keys.
func (r *Reader) verifyAll(ctx context.Context) error {
	s, err := r.openStream(ctx)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	if err := r.readManifest(s, &sums); err != nil {
		return err
	}
	seen := map[place]bool{}
	for last := (place{}); ; {
		h, err := s.nextEntry()
		if err != nil {
			return err
		}
		if h.Name == sumsName {
			return s.checkEnd(h, sums.Bytes())
		}
		if last, err = r.checkEntry(s, h, last, &sums); err != nil {
			return err
		}
		if seen[last] {
			return damagedFault(fmt.Errorf("it holds %.80q twice", h.Name))
		}
		seen[last] = true
	}
}

// place identifies an entry by its name and, for rows, its part number.
type place struct {
	name Name
	part int
}

// checkEntry reads an entry, checks that a part of rows follows the part before it, and adds the
// entry's sum to sums.
func (r *Reader) checkEntry(s *stream, h *tar.Header, last place, sums *bytes.Buffer) (place, error) {
	n, part, err := parseName(h.Name)
	if err != nil {
		return place{}, err
	}
	if n.isInParts() && part != 1 && (last.name != n || part != last.part+1) {
		return place{}, damagedFault(fmt.Errorf("%s is not where it belongs", h.Name))
	}
	digest := sha256.New()
	var into io.Writer = digest
	var data bytes.Buffer
	if keep := n.Kind == Config || n.Kind == Key; keep {
		s.spent.kept += h.Size
		into = io.MultiWriter(digest, &data)
		defer func() { r.Files = append(r.Files, File{n, data.Bytes()}) }()
	}
	if _, err := io.Copy(into, s); err != nil {
		return place{}, err
	}
	sums.WriteString(sumLine(h.Name, [sha256.Size]byte(digest.Sum(nil))))
	return place{n, part}, nil
}

func (r *Reader) readManifest(s *stream, sums *bytes.Buffer) error {
	foreign := fault.New(fault.Invalid, "the file is not a backup that lightweb wrote")
	h, err := s.nextEntry()
	if err != nil {
		return err
	}
	data, err := io.ReadAll(s)
	if err != nil {
		return err
	}
	if h.Name != FirstEntry || json.Unmarshal(data, &r.Manifest) != nil || r.Manifest.Format < 1 {
		return foreign
	}
	if r.Manifest.Format > format {
		return fault.New(fault.Config, fmt.Sprintf("the archive has format %d, newer than this lightweb reads (%d)", r.Manifest.Format, format)).
			WithHint("use the lightweb that wrote it, " + r.Manifest.Version + ", or a newer one")
	}
	s.spent.bounded = r.bounded && !r.Manifest.Whole
	sums.WriteString(sumLine(FirstEntry, sha256.Sum256(data)))
	return nil
}

// stream reads the entries of an archive one after another. Read reads the current entry.
type stream struct {
	// ctx is the context of the call that reads. It is stored here because io.Reader takes no
	// context.
	ctx    context.Context
	raw    *bufio.Reader
	gz     *gzip.Reader
	tar    *tar.Reader
	peeked *tar.Header
	spent  spending
}

func (r *Reader) openStream(ctx context.Context) (*stream, error) {
	if _, err := r.f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	var packed int64
	raw := bufio.NewReaderSize(&Meter{r.f, &packed}, 1<<20)
	gz, err := gzip.NewReader(raw)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "the file is not a backup that lightweb wrote", err)
	}
	gz.Multistream(false)
	s := &stream{ctx: ctx, raw: raw, gz: gz, spent: spending{bounded: true, packed: &packed}} // until the manifest is read
	s.tar = tar.NewReader(&unpacking{s})
	return s, nil
}

// unpacking reads what an archive unpacks to: its entries, and the records of the tar beside them.
type unpacking struct{ s *stream }

func (u *unpacking) Read(b []byte) (int, error) {
	s := u.s
	if err := s.ctx.Err(); err != nil {
		return 0, fault.Wrap(fault.Busy, "time ran out", err)
	}
	n, err := s.gz.Read(b)
	s.spent.bytes += int64(n)
	if over := s.spent.check(); over != nil {
		return n, over
	}
	return n, err
}

// maxSize returns the largest size, in bytes, that an entry with that name may have.
func maxSize(name string) int64 {
	switch {
	case name == sumsName:
		return maxSums
	case name == Name{Kind: Config}.String():
		return MaxFile
	case documentForm.MatchString(name) && name != FirstEntry:
		return maxUserBytes
	}
	return maxEntry
}

// nextEntry advances to the next entry. It refuses an entry that is not a plain file, has holes,
// or is larger than maxSize permits. It also refuses an archive that exceeds the limits of
// spending.
func (s *stream) nextEntry() (*tar.Header, error) {
	if h := s.peeked; h != nil {
		s.peeked = nil
		return h, nil
	}
	h, err := s.tar.Next()
	if err != nil {
		return nil, s.cutFault(err)
	}
	if h.Typeflag != tar.TypeReg || h.Size > maxSize(h.Name) || IsSparse(h) {
		return nil, damagedFault(fmt.Errorf("%.80q is no entry that lightweb writes", h.Name))
	}
	s.spent.entries++
	return h, s.spent.check()
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.tar.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.cutFault(err)
	}
	return n, err
}

// cutFault returns the fault for err, which ended the reading too early. Only the sums may end
// an archive.
func (s *stream) cutFault(err error) error {
	var disk *os.PathError
	switch {
	case fault.Of(err) != nil: // of unpacking
		return err
	case errors.As(err, &disk):
		return fmt.Errorf("read the archive: %w", err)
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return damagedFault(err)
}

// checkEnd compares the sums in the archive with the parameter want, and checks that nothing
// follows them.
func (s *stream) checkEnd(h *tar.Header, want []byte) error {
	if h.Size != int64(len(want)) {
		return damagedFault(errors.New("the sums are of other entries"))
	}
	got, err := io.ReadAll(s)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return damagedFault(errors.New("the sums are of other bytes"))
	}
	if _, err := s.tar.Next(); !errors.Is(err, io.EOF) {
		return damagedFault(errors.New("something follows the sums"))
	}
	if _, err := io.Copy(io.Discard, &unpacking{s}); err != nil {
		return s.cutFault(err)
	}
	if _, err := s.raw.ReadByte(); !errors.Is(err, io.EOF) {
		return damagedFault(errors.New("something follows the archive"))
	}
	return nil
}

// content reads an entry and the parts that follow it as one stream.
type content struct {
	s    *stream
	name Name
	over bool
}

func (c *content) Read(b []byte) (int, error) {
	for !c.over {
		n, err := c.s.Read(b)
		if n > 0 || err == nil {
			return n, nil
		}
		if !errors.Is(err, io.EOF) {
			return 0, err
		}
		if err := c.goOn(); err != nil {
			return 0, err
		}
	}
	return 0, io.EOF
}

// goOn advances to the next part, or sets over if there is none.
func (c *content) goOn() error {
	if c.over = !c.name.isInParts(); c.over {
		return nil
	}
	h, err := c.s.nextEntry()
	if err != nil {
		return err
	}
	if n, _, err := parseName(h.Name); err != nil || n != c.name {
		c.s.peeked, c.over = h, true
	}
	return nil
}
