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

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
)

// rsaBits is the size of the RSA keys that are made: what every peer takes, and the cheapest to
// sign with.
const rsaBits = 2048

// maxKeyFile is the largest key file read, in bytes.
const maxKeyFile = 64 << 10

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

// makeKeys makes the keys that are missing in dir; the Ed25519 key has the fragment as its id. Of
// several processes that make the same key one wins, whole.
func makeKeys(dir, fragment string) error {
	for _, k := range kinds {
		err := registry.CreateFile(keyFile(dir, k.name), func() ([]byte, error) {
			key, err := k.make()
			if err != nil {
				return nil, fmt.Errorf("make %s key: %w", k.name, err)
			}
			der, err := x509.MarshalPKCS8PrivateKey(key)
			if err != nil {
				return nil, fmt.Errorf("encode %s key: %w", k.name, err)
			}
			block := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
			if _, is := key.(ed25519.PrivateKey); is && fragment != ed25519Fragment {
				block = append([]byte(idFact+fragment+"\n"), block...)
			}
			return block, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readKey returns the private key in the file: exactly one PEM block of PKCS #8 (RFC 5958). The
// fragment is empty unless the file says which id the key has.
func (k *Keyring) readKey(path string) (key any, fragment string, err error) {
	data, err := k.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, "", fmt.Errorf("%s is not one PRIVATE KEY in PEM", path)
	}
	if key, err = x509.ParsePKCS8PrivateKey(block.Bytes); err != nil {
		return nil, "", fmt.Errorf("parse %s: %w", path, err)
	}
	return key, factOf(data, idFact), nil
}

// ReadFile returns the content of a key file, unless others can reach it: then the fault is Config.
func (k *Keyring) ReadFile(path string) ([]byte, error) {
	// It waits for no writer, should the file be a pipe.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, k.refuseLink(path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if err := k.checkFile(path, info); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(data) > maxKeyFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxKeyFile)
	}
	return data, err
}

// checkFile refuses a key file that is none, that others may read or write, or that others own.
func (k *Keyring) checkFile(path string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return k.refuseLink(path)
	case !mode.IsRegular():
		return refuseFile(path, "is not a file", "put the key there, then 'chmod 600 "+path+"'")
	case !k.isOwner(info):
		return refuseFile(path, "belongs to another account", fmt.Sprintf("'chown %d %s', then 'chmod 600 %s'", k.uid, path, path))
	case mode.Perm()&0o077 != 0:
		return refuseFile(path, fmt.Sprintf("is open to other accounts (mode %04o)", mode.Perm()), "'chmod 600 "+path+"'")
	}
	return nil
}

func (k *Keyring) refuseLink(path string) error {
	return refuseFile(path, "is a link", "put the key itself in its place, then 'chmod 600 "+path+"'")
}

func refuseFile(path, why, hint string) error {
	return fault.New(fault.Config, "the key file "+filepath.Base(path)+" "+why).WithHint(hint)
}

// isOwner reports whether the file belongs to the account of this process. Commands that root runs
// also take the files of the account that users_dir belongs to: the engine runs as that one.
func (k *Keyring) isOwner(file fs.FileInfo) bool {
	owner := ownerOf(file)
	if owner == k.uid || k.uid != 0 {
		return owner == k.uid
	}
	dir, err := os.Stat(k.usersDir)
	return err == nil && owner == ownerOf(dir)
}

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
