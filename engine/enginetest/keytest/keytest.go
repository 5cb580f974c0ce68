// Package keytest lends private keys to the users and instances of tests.
package keytest

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

// rsaKeys are private keys that the users and instances of a test binary share, because creating a
// key takes more processor time than most commands. The keys are lent in turn. Two users thus
// share a key only if at least 15 users or instances got a key between them.
var rsaKeys struct {
	sync.Mutex
	files [16][]byte
	next  int
}

// Lend writes an RSA key into the key folder of a user or of an instance. A keyring or a command
// that later creates the keys uses this RSA key, and creates only the Ed25519 key.
func Lend(t testing.TB, folder string) {
	t.Helper()
	err := registry.CreateFile(filepath.Join(folder, "rsa.pem"), takeKey)
	if err != nil {
		t.Fatal("lend a key: ", err)
	}
}

func takeKey() ([]byte, error) {
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
