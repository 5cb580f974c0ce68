package actor

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// retiredKey is an Ed25519 key that signs nothing any more. Its proofs still hold, so it stays
// in the document of the actor for a while.
type retiredKey struct {
	fragment string
	at       time.Time
	key      ed25519.PublicKey
}

// RetiredFile returns the path of the file of u's retired keys. The file need not exist.
func (k *Keyring) RetiredFile(u vocab.Username) string { return retiredFile(k.Dir(u)) }

func retiredFile(dir string) string { return keyFile(dir, "retired") }

// The beginnings of the lines before a PEM block that state facts about its key. Programs that
// read PEM skip such lines.
const (
	idFact      = "Id: "
	retiredFact = "Retired: "
)

// factOf returns the text after name in the lines before a PEM block, or "" if no line begins
// with name.
func factOf(head []byte, name string) string {
	for line := range strings.Lines(string(head)) {
		if fact, is := strings.CutPrefix(line, name); is {
			return strings.TrimSpace(fact)
		}
	}
	return ""
}

// readRetired returns the retired keys in a folder of keys.
func (k *Keyring) readRetired(dir string) ([]retiredKey, error) {
	data, err := k.ReadFile(retiredFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []retiredKey
	for len(bytes.TrimSpace(data)) > 0 {
		block, rest := pem.Decode(data)
		if block == nil || block.Type != "PUBLIC KEY" {
			return nil, fmt.Errorf("%s holds something else than PUBLIC KEYs in PEM", filepath.Base(retiredFile(dir)))
		}
		key, err := parseRetired(data[:len(data)-len(rest)], block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parse %s: %w", filepath.Base(retiredFile(dir)), err)
		}
		all, data = append(all, key), rest
	}
	return all, nil
}

func parseRetired(head, der []byte) (r retiredKey, err error) {
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return r, err
	}
	r.fragment = factOf(head, idFact)
	if r.at, err = time.Parse(time.RFC3339, factOf(head, retiredFact)); err != nil {
		return r, err
	}
	var is bool
	if r.key, is = public.(ed25519.PublicKey); !is || !strings.HasPrefix(r.fragment, "#") {
		return r, errors.New("a retired key is no Ed25519 key with an id")
	}
	return r, nil
}

// writeRetired replaces the retired keys in a folder of keys.
func writeRetired(dir string, all []retiredKey) error {
	var text bytes.Buffer
	for _, r := range all {
		der, err := x509.MarshalPKIXPublicKey(r.key)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s%s\n%s%s\n%s", idFact, r.fragment, retiredFact, r.at.UTC().Format(time.RFC3339),
			pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	}
	return registry.ReplaceFile(retiredFile(dir), text.Bytes())
}

// PruneRetired removes the retired keys of u for which isNeeded returns false. It calls isNeeded
// with the time at which the key was retired. It keeps a key that is retired during its run.
func (k *Keyring) PruneRetired(u vocab.Username, isNeeded func(since time.Time) (bool, error)) error {
	all, err := k.readRetired(k.Dir(u))
	if err != nil {
		return err
	}
	unneeded := map[string]bool{}
	for _, r := range all {
		needed, err := isNeeded(r.at)
		if err != nil {
			return err
		}
		if !needed {
			unneeded[r.fragment] = true
		}
	}
	if len(unneeded) == 0 {
		return nil
	}
	return k.forgetRetired(u, unneeded)
}

// forgetRetired removes retired keys of u. It takes the lock that Rotate takes, so that no
// rotation runs at the same time.
func (k *Keyring) forgetRetired(u vocab.Username, fragments map[string]bool) error {
	unlock, err := registry.LockFolder(filepath.Dir(k.Dir(u)))
	if err != nil {
		return fmt.Errorf("forget retired keys of %s: %w", u, err)
	}
	defer unlock()
	now, err := k.readRetired(k.Dir(u))
	if err != nil {
		return err
	}
	return writeRetired(k.Dir(u), slices.DeleteFunc(now, func(r retiredKey) bool { return fragments[r.fragment] }))
}
