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

// rsaBits is the size of new RSA keys. Every peer accepts keys of this size, and signing with them
// costs the least.
const rsaBits = 2048

// maxKeyFile is the size of the largest key file that is read, in bytes.
const maxKeyFile = 64 << 10

// kinds are the kinds of key that an actor has. The name is the name of the key file without
// .pem.
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

// makeKeys makes the keys that are missing in dir. The id of a new Ed25519 key ends with
// fragment. If several processes make the same key, one of them wins, and its file is complete.
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

// readKey returns the private key in the file, which must be exactly one PEM block of PKCS #8 (RFC
// 5958). The result fragment is the fragment of the key's id if the file states it, and empty
// otherwise.
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

// ReadFile returns the content of a key file. The fault is Config when the file is a link or not
// a regular file, when it belongs to another account, or when other accounts may access it.
func (k *Keyring) ReadFile(path string) ([]byte, error) {
	// O_NONBLOCK: if the file is a pipe, the open does not wait for a writer.
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

// checkFile refuses a key file that is not a regular file, that belongs to another account, or
// that other accounts may access.
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

// isOwner reports whether the file belongs to the account of this process. If that account is
// root, the file may also belong to the account that owns users_dir, because the engine runs
// under that account.
func (k *Keyring) isOwner(file fs.FileInfo) bool {
	owner := ownerOf(file)
	if owner == k.uid || k.uid != 0 {
		return owner == k.uid
	}
	dir, err := os.Stat(k.usersDir)
	return err == nil && owner == ownerOf(dir)
}

func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
