package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// chunk is the largest number of bytes of rows in one entry. A tar states the size of an entry
// before its content, so up to this much is buffered in memory.
const chunk = 4 << 20

// Writer writes an archive as a stream. The output is a backup only after Close has returned
// nil.
type Writer struct {
	gz   *gzip.Writer
	tar  *tar.Writer
	at   time.Time
	sums bytes.Buffer
	part []byte // the part that is being filled
}

// NewWriter begins an archive with its manifest.
func NewWriter(w io.Writer, m Manifest) (*Writer, error) {
	gz, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	m.Format = format
	aw := &Writer{gz: gz, tar: tar.NewWriter(gz), at: m.CreatedAt, part: make([]byte, 0, chunk)}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	return aw, aw.writeEntry(FirstEntry, data)
}

// Add writes a file.
func (w *Writer) Add(n Name, content []byte) error { return w.writeEntry(n.String(), content) }

// Rows returns a writer for the rows of a table. Close it before anything else is written.
func (w *Writer) Rows(n Name) io.WriteCloser {
	return &rows{to: w, name: n}
}

// Stream writes a file of any size. It calls the function write, which must write exactly size
// bytes.
func (w *Writer) Stream(n Name, size int64, write func(io.Writer) error) error {
	if err := w.writeHeader(n.String(), size); err != nil {
		return err
	}
	digest := sha256.New()
	if err := write(io.MultiWriter(w.tar, digest)); err != nil {
		return err
	}
	w.sums.WriteString(sumLine(n.String(), [sha256.Size]byte(digest.Sum(nil))))
	return w.tar.Flush() // fails when fewer bytes were written
}

// Close ends the archive with its sums.
func (w *Writer) Close() error {
	if err := w.writeEntry(sumsName, bytes.Clone(w.sums.Bytes())); err != nil {
		return err
	}
	if err := w.tar.Close(); err != nil {
		return err
	}
	return w.gz.Close()
}

func (w *Writer) writeEntry(name string, content []byte) error {
	w.sums.WriteString(sumLine(name, sha256.Sum256(content)))
	if err := w.writeHeader(name, int64(len(content))); err != nil {
		return err
	}
	_, err := w.tar.Write(content)
	return err
}

func (w *Writer) writeHeader(name string, size int64) error {
	return w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: w.at, Format: tar.FormatPAX})
}

// sumLine returns the line of one entry in the sums.
func sumLine(name string, digest [sha256.Size]byte) string {
	return fmt.Sprintf("%x  %s\n", digest, name)
}

// rows splits the bytes that are written to it into entries.
type rows struct {
	to   *Writer
	name Name
	cut  int
}

func (r *rows) Write(b []byte) (n int, err error) {
	for n < len(b) {
		part := r.to.part
		fits := min(len(b)-n, cap(part)-len(part))
		r.to.part = append(part, b[n:n+fits]...)
		n += fits
		if len(r.to.part) == chunk {
			if err := r.flushPart(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (r *rows) flushPart() error {
	r.cut++
	err := r.to.writeEntry(r.name.partName(r.cut), r.to.part)
	r.to.part = r.to.part[:0]
	return err
}

// Close writes the rest of the rows. A table without rows has no entry.
func (r *rows) Close() error {
	if len(r.to.part) == 0 {
		return nil
	}
	return r.flushPart()
}
