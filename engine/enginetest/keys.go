package enginetest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"sync"
	"testing"

	"github.com/lightweb/lightweb/engine/registry"
)

// rsaKeys lends private keys to the users and instances of a test binary: making one takes more
// processor time than most commands. Two users share a key only when many were made in between.
var rsaKeys struct {
	sync.Mutex
	files [16][]byte
	next  int
}

// lendKey puts an RSA key into the folder of a user's or an instance's keys. The command that
// makes the keys finds it there and makes the missing one.
func lendKey(t testing.TB, folder string) {
	t.Helper()
	err := registry.CreateFile(filepath.Join(folder, "rsa.pem"), nextKey)
	if err != nil {
		t.Fatal("lend a key: ", err)
	}
}

func nextKey() ([]byte, error) {
	rsaKeys.Lock()
	defer rsaKeys.Unlock()
	n := rsaKeys.next % len(rsaKeys.files)
	rsaKeys.next++
	if rsaKeys.files[n] == nil {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, err
		}
		rsaKeys.files[n] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	return rsaKeys.files[n], nil
}
