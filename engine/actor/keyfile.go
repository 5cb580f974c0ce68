package actor

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// rsaBits is the size of the RSA keys that are made: what every peer takes, and the cheapest to sign with.
const rsaBits = 2048

// maxKeyFile is the largest key file read, in bytes.
const maxKeyFile = 64 << 10

// abandonedAfter is when a temporary file can no longer belong to a key that is being made.
const abandonedAfter = time.Hour

// kinds are the keys of an actor, by the name of their file without .pem.
var kinds = []struct {
	name string
	make func() (crypto.Signer, error)
}{
	{"ed25519", func() (crypto.Signer, error) {
		_, k, err := ed25519.GenerateKey(rand.Reader)
		return k, err
	}},
	{"rsa", func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, rsaBits) }},
}

func keyFile(dir, kind string) string { return filepath.Join(dir, kind+".pem") }

// makeKeys makes the keys that are missing in dir. Of several processes that make the same key one wins, whole.
func makeKeys(dir string) error {
	if err := makeFolder(dir); err != nil {
		return err
	}
	for _, k := range kinds {
		path := keyFile(dir, k.name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				return err
			}
			continue
		}
		key, err := k.make()
		if err != nil {
			return fmt.Errorf("make %s key: %w", k.name, err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return fmt.Errorf("encode %s key: %w", k.name, err)
		}
		if err := place(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})); err != nil {
			return err
		}
	}
	return syncFolder(dir)
}

// place makes data the content of path, unless there is a file already: that one then stays. The file is never there in
// part, whatever happens meanwhile.
func place(path string, data []byte) error {
	dir, base := filepath.Split(path)
	removeAbandoned(dir, base)
	f, err := os.CreateTemp(dir, "."+base+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, adopt(f, dir), f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // unlike a rename, it never replaces
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// removeAbandoned clears away the keys of makers that were killed. It is housekeeping: the next one tries again.
func removeAbandoned(dir, base string) {
	left, _ := filepath.Glob(filepath.Join(dir, "."+base+".*.tmp")) // the only error is of the pattern
	for _, name := range left {
		if info, err := os.Lstat(name); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			_ = os.Remove(name) // as above
		}
	}
}

// makeFolder makes dir and what is missing above it, closed to others.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := makeFolder(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(adopt(f, parent), f.Close(), syncFolder(parent))
}

// adopt gives f to the owner of dir when root made it: an administrator's command must not leave keys that the engine,
// which runs as another user, cannot read.
func adopt(f *os.File, dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
		return f.Chown(int(owner.Uid), int(owner.Gid))
	}
	return nil
}

// syncFolder makes the names in dir survive a power cut.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readKey returns the private key in the file: exactly one PEM block of PKCS #8 (RFC 5958).
func readKey(path string) (any, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // without waiting for a writer, should it be a pipe
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 || len(data) > maxKeyFile {
		return nil, fmt.Errorf("%s is not one PRIVATE KEY in PEM", path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	return key, nil
}
