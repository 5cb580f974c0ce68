// Package foreign reads files that other programs have exported for a user: lists of accounts
// and domains, and archives of ActivityPub documents. It opens only the file that it is given.
// Paths in an archive are only compared, and never opened.
package foreign

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/lightweb/lightweb/engine/archive"
	"github.com/lightweb/lightweb/engine/fault"
)

// Kind is the kind of content of a file.
type Kind string

// The kinds of files.
const (
	Export    Kind = "lightweb"  // an archive of lightweb
	Archive   Kind = "archive"   // an archive in the form of Mastodon's
	Following Kind = "following" // accounts to follow
	Mutes     Kind = "mutes"     // accounts to mute
	Blocks    Kind = "blocks"    // accounts to block
	Domains   Kind = "domains"   // domains to mute
	Accounts  Kind = "accounts"  // accounts for an unknown purpose
)

// ParseKind parses the purpose of a list of accounts, as a person names it.
func ParseKind(s string) (Kind, error) {
	switch k := Kind(s); k {
	case Following, Mutes, Blocks:
		return k, nil
	}
	return "", fault.New(fault.Usage, fmt.Sprintf("%.40q is none of following, mutes and blocks", s))
}

// Detect returns the kind of a file by its content. The fault is NotFound if the file cannot be
// opened, Invalid if this package cannot read files of its kind, and TooLarge if it is a list that
// exceeds the limits.
func Detect(ctx context.Context, path string) (Kind, error) {
	f, err := openFile(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var head [4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil {
		return "", fault.New(fault.Invalid, "the file is empty, or close to it")
	}
	switch {
	case bytes.Equal(head[:], []byte("PK\x03\x04")):
		return Archive, nil
	case bytes.HasPrefix(head[:], []byte("\x1f\x8b")):
		return detectPacked(ctx, f)
	}
	l, err := readList(f, head[:])
	return l.Kind, err
}

// detectPacked returns the kind of a gzipped tar, by its first entry.
func detectPacked(ctx context.Context, f *os.File) (Kind, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	e := entries{ctx: ctx}
	gz, err := gzip.NewReader(&archive.Meter{From: f, N: &e.packed})
	if err != nil {
		return "", damagedFault(err)
	}
	h, err := tar.NewReader(&spender{e: &e, from: gz}).Next()
	if err != nil {
		return "", readFault(err)
	}
	if h.Name == archive.FirstEntry {
		return Export, nil
	}
	return Archive, nil
}

// openFile opens a regular file. It refuses folders, devices and pipes.
func openFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, "the file "+path+" cannot be read", err).WithHint("is it there, and may you read it?")
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fault.New(fault.Invalid, path+" is not a file").WithHint("it is read several times: write it to a file first")
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// damagedFault returns the fault for a damaged or invalid file.
func damagedFault(why error) error {
	return fault.Wrap(fault.Invalid, "the file is damaged, or no archive of a user: "+why.Error(), why).WithCode("archive_damaged").WithHint("nothing was changed")
}
