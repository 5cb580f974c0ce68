package actor

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Rotate replaces the keys of u, and returns the id of the new Ed25519 key. The new RSA key has
// the same id as the old one, because peers look for the actor's key under that id. The old
// Ed25519 key is retired. If a rotation was killed, the next rotation completes it with the keys
// that were already made.
func (k *Keyring) Rotate(u vocab.Username) (id string, err error) {
	if u.IsZero() {
		return "", fault.New(fault.Invalid, "nobody has no keys")
	}
	unlock, err := registry.LockFolder(filepath.Dir(k.Dir(u)))
	if err != nil {
		return "", fmt.Errorf("rotate keys of %s: %w", u, err)
	}
	defer unlock()
	k.sets.drop(u) // another process may have rotated them just now
	set, err := k.loadSet(u)
	if err != nil {
		return "", err
	}
	if err := k.replaceKeys(k.Dir(u), set); err != nil {
		return "", fmt.Errorf("rotate keys of %s: %w", u, err)
	}
	k.sets.drop(u)
	if set, err = k.loadSet(u); err != nil {
		return "", err
	}
	return set.Ed25519.ID, nil
}

// replaceKeys makes the new keys in the subfolder next, then moves each over the old one.
func (k *Keyring) replaceKeys(dir string, set *keyset) error {
	next := filepath.Join(dir, "next")
	if err := k.prepareRotation(dir, next, set); err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := registry.MoveFile(keyFile(next, kind.name), keyFile(dir, kind.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.RemoveAll(next)
}

// prepareRotation makes the new keys, and retires the current Ed25519 key. Keys are made and
// moved in the order of kinds. So if only the first new key is missing, an earlier rotation has
// moved it already, and there is nothing left to prepare.
func (k *Keyring) prepareRotation(dir, next string, set *keyset) error {
	first, last := keyFile(next, kinds[0].name), keyFile(next, kinds[len(kinds)-1].name)
	if isThere(last) && !isThere(first) {
		return nil
	}
	if err := makeKeys(next, ed25519Fragment+"-"+strings.ToLower(rand.Text()[:8])); err != nil {
		return err
	}
	if err := os.Chtimes(last, set.since, set.since); err != nil { // the actor's age must not change
		return err
	}
	fragment := set.Ed25519.ID[strings.IndexByte(set.Ed25519.ID, '#'):]
	if slices.ContainsFunc(set.retired, func(r retiredKey) bool { return r.fragment == fragment }) {
		return nil
	}
	return writeRetired(dir, append(slices.Clone(set.retired),
		retiredKey{fragment, k.now(), set.Ed25519.Private.Public().(ed25519.PublicKey)}))
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
