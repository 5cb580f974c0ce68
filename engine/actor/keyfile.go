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
	"os"
	"path/filepath"
	"syscall"

	"github.com/lightweb/lightweb/engine/registry"
)

// rsaBits is the size of the RSA keys that are made: what every peer takes, and the cheapest to sign with.
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

// makeKeys makes the keys that are missing in dir. Of several processes that make the same key one wins, whole.
func makeKeys(dir string) error {
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
			return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
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
