package foreign

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"os"

	"github.com/lightweb/lightweb/engine/archive"
)

// readTar reads a gzipped tar.
func (e *entries) readTar(f *os.File) error {
	gz, err := gzip.NewReader(bufio.NewReaderSize(&archive.Meter{From: f, N: &e.packed}, 1<<20))
	if err != nil {
		return damagedFault(err)
	}
	unpacked := &spender{e: e, from: gz} // of the records beside the entries, too
	t := tar.NewReader(unpacked)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			_, err := io.Copy(io.Discard, unpacked) // this also verifies the checksum at the end
			return err
		}
		if err != nil {
			return readFault(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir || archive.IsSparse(h) {
			return damagedFault(errors.New("it holds a link, a file with holes, or what is no file"))
		}
		if err := e.add(h.Name, h.FileInfo().Mode(), h.Size); err != nil {
			return err
		}
		if err := e.hand(h.Name, &spender{e: e, from: t, isCounted: true}); err != nil {
			return err
		}
	}
}
