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

// Rotate replaces the keys of u, and returns the id of the new Ed25519 key. The RSA key has the id
// of the one before it: others find the actor's key there. The Ed25519 key before it is retired. A
// rotation that was killed is finished by the next one, with the keys that it had made.
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

// replaceKeys makes the next keys in a folder beside the keys, then puts each in its place.
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

// prepareRotation makes the next keys, and retires the Ed25519 key that is used until now. The
// first of the kinds is made, and put in its place, first: when it alone is missing, an earlier
// rotation has put it there, and all is prepared.
func (k *Keyring) prepareRotation(dir, next string, set *keyset) error {
	first, last := keyFile(next, kinds[0].name), keyFile(next, kinds[len(kinds)-1].name)
	if isThere(last) && !isThere(first) {
		return nil
	}
	if err := makeKeys(next, ed25519Fragment+"-"+strings.ToLower(rand.Text()[:8])); err != nil {
		return err
	}
	if err := os.Chtimes(last, set.since, set.since); err != nil { // the actor is as old as it was
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
