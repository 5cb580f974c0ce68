package actor

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The fragments of key ids. rsaFragment names an actor's RSA key. ed25519Fragment names an
// actor's first Multikey (FEP-521a), and Rotate appends a suffix for each later one. The RSA key
// signs HTTP requests. The Multikey signs them only to peers that announce that they accept
// Ed25519.
const (
	rsaFragment     = "#main-key"
	ed25519Fragment = "#ed25519-key"
)

// lookEvery is the shortest time between two checks of an actor's key files, which another
// process may have changed.
const lookEvery = time.Second

// Keyring holds the private keys of the users and of the instance actor. It is safe for
// concurrent use, also while other processes use the same folders.
type Keyring struct {
	Log *slog.Logger // logs refused key files; it discards the messages unless it is replaced before the first use

	usersDir, instanceDir, origin string
	uid                           int // of the account of this process
	now                           func() time.Time

	making  sync.Mutex
	telling sync.Mutex
	sets    *lru[vocab.Username, looked]
}

// looked is the result of the last look at the files of a set of keys.
type looked struct {
	set     *keyset // nil when the files were refused
	at      time.Time
	refusal string // the refusal that was logged last
}

// keyset is the keys of one actor. A keyset is never changed, so equal pointers mean equal keys.
type keyset struct {
	transport.Keys
	retired []retiredKey
	files   []fs.FileInfo // in the order of kinds, then the file of retired keys if there is one
	since   time.Time     // when the first keys of the actor were made
}

// NewKeyring returns the keyring of <usersDir>/<username>/keys and <dataDir>/instance/keys, for
// actors at origin.
func NewKeyring(usersDir, dataDir, origin string) *Keyring {
	return &Keyring{Log: slog.New(slog.DiscardHandler), usersDir: usersDir, instanceDir: filepath.Join(dataDir, "instance", "keys"), origin: origin,
		uid: os.Geteuid(), now: time.Now, sets: newLRU[vocab.Username, looked](remembered, 0, nil)}
}

// Create makes the keys of u that are missing, and leaves the others as they are.
func (k *Keyring) Create(u vocab.Username) error {
	if u.IsZero() {
		return fault.New(fault.Invalid, "nobody has no keys")
	}
	if err := makeKeys(k.Dir(u), ed25519Fragment); err != nil {
		return fmt.Errorf("make keys of %s: %w", u, err)
	}
	return nil
}

// Remove removes the keys of u for good, and then the folder of u if nothing else is in it.
func (k *Keyring) Remove(u vocab.Username) error {
	if u.IsZero() {
		return fault.New(fault.Invalid, "nobody has no keys")
	}
	dir := k.Dir(u)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove keys of %s: %w", u, err)
	}
	k.sets.drop(u)
	if err := os.Remove(filepath.Dir(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		return fmt.Errorf("remove folder of %s: %w", u, err)
	}
	return nil
}

// Keys returns the keys with which u signs. The fault is NoUser when u has none.
func (k *Keyring) Keys(u vocab.Username) (transport.Keys, error) {
	if u.IsZero() {
		return transport.Keys{}, fault.New(fault.NoUser, "nobody has no keys")
	}
	set, err := k.loadSet(u)
	if err != nil {
		return transport.Keys{}, err
	}
	return set.Keys, nil
}

// CreateInstance makes the keys of the instance actor that are missing, and leaves the others as
// they are.
func (k *Keyring) CreateInstance() error {
	k.making.Lock()
	defer k.making.Unlock()
	if err := makeKeys(k.instanceDir, ed25519Fragment); err != nil {
		return fmt.Errorf("make keys of the instance: %w", err)
	}
	return nil
}

// Instance returns the keys of the instance actor. The fault is Config, and wraps fs.ErrNotExist,
// when there are none.
func (k *Keyring) Instance() (transport.Keys, error) {
	set, err := k.loadSet(vocab.Username{})
	if err != nil {
		return transport.Keys{}, err
	}
	return set.Keys, nil
}

// Dir returns the folder of u's keys.
func (k *Keyring) Dir(u vocab.Username) string { return filepath.Join(k.usersDir, u.String(), "keys") }

// Files returns the paths of u's key files, or of the instance's key files if u is the zero
// Username. The files need not exist.
func (k *Keyring) Files(u vocab.Username) []string {
	dir := k.Dir(u)
	if u.IsZero() {
		dir = k.instanceDir
	}
	files := make([]string, len(kinds))
	for i, kind := range kinds {
		files[i] = keyFile(dir, kind.name)
	}
	return files
}

// Kinds returns the kinds of key that u has, out of "ed25519" and "rsa".
func (k *Keyring) Kinds(u vocab.Username) []string {
	found := []string{}
	for _, kind := range kinds {
		if _, err := os.Stat(keyFile(k.Dir(u), kind.name)); err == nil {
			found = append(found, kind.name)
		}
	}
	return found
}

// loadSet returns the keys of u from their files, or those of the instance if u is the zero
// Username. It checks the files for changes if the last check is at least lookEvery ago.
func (k *Keyring) loadSet(u vocab.Username) (*keyset, error) {
	now := k.now()
	known, ok := k.sets.get(u)
	if ok = ok && known.set != nil; ok && now.Sub(known.at) < lookEvery {
		return known.set, nil
	}
	owner, dir := k.origin+"/users/"+u.String(), k.Dir(u)
	if u.IsZero() {
		owner, dir = k.origin+"/actor", k.instanceDir
	}
	files, err := k.statFiles(dir)
	if err == nil && (!ok || !isSameSet(known.set.files, files)) {
		known.set, err = k.readSet(dir, owner, files)
	}
	if err != nil {
		return nil, k.refuseSet(u, dir, err)
	}
	k.sets.put(u, looked{set: known.set, at: now})
	return known.set, nil
}

// refuseSet returns the reason why the keys of u cannot be used. It logs each refusal once, until
// the reason changes or the keys can be used again. It does not log that u has no keys at all,
// because the caller reports that.
func (k *Keyring) refuseSet(u vocab.Username, dir string, err error) error {
	refusal := explainUnusable(u, dir, err)
	if errors.Is(err, fs.ErrNotExist) {
		k.sets.drop(u)
		return refusal
	}
	k.telling.Lock()
	defer k.telling.Unlock()
	if known, _ := k.sets.get(u); known.refusal != refusal.Error() {
		k.sets.put(u, looked{refusal: refusal.Error()})
		k.Log.Error("keys could not be read", "user", u, "err", refusal, "hint", refusal.Hint)
	}
	return refusal.AsLogged()
}

func explainUnusable(u vocab.Username, dir string, err error) *fault.Error {
	if of := fault.Of(err); of != nil {
		return of
	}
	if errors.Is(err, fs.ErrNotExist) && !u.IsZero() {
		return fault.Wrap(fault.NoUser, fmt.Sprintf("there are no keys of a user %q", u), err).
			WithHint("restore " + dir + " from a backup: peers know these keys; 'lightweb user create' only finishes a user that it began")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Config, "there are no keys of the instance", err).
			WithHint("restore " + dir + " from a backup: peers know these keys; before there is a user, 'lightweb serve' makes them")
	}
	return fault.Wrap(fault.Config, "the keys cannot be read", err).WithHint("restore the readable files of " + dir + " from a backup: peers know these keys")
}

// statFiles returns the file infos of a set of keys. It checks owner and permissions each time,
// because they can change while the content does not.
func (k *Keyring) statFiles(dir string) ([]fs.FileInfo, error) {
	var files []fs.FileInfo
	for _, kind := range kinds {
		path := keyFile(dir, kind.name)
		info, err := os.Lstat(path)
		if err == nil {
			err = k.checkFile(path, info)
		}
		if err != nil {
			return nil, err
		}
		files = append(files, info)
	}
	if info, err := os.Lstat(retiredFile(dir)); err == nil {
		files = append(files, info)
	}
	return files, nil
}

func isSameSet(a, b []fs.FileInfo) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) {
			return false
		}
	}
	return true
}

func (k *Keyring) readSet(dir, owner string, files []fs.FileInfo) (*keyset, error) {
	set := &keyset{files: files, since: files[0].ModTime()}
	var err error
	if set.retired, err = k.readRetired(dir); err != nil {
		return nil, err
	}
	for i, kind := range kinds {
		key, fragment, err := k.readKey(keyFile(dir, kind.name))
		if err != nil {
			return nil, err
		}
		switch key := key.(type) {
		case *rsa.PrivateKey:
			set.RSA = signature.Key{ID: owner + rsaFragment, Private: key}
		case ed25519.PrivateKey:
			set.Ed25519 = signature.Key{ID: owner + cmp.Or(fragment, ed25519Fragment), Private: key}
		}
		if t := files[i].ModTime(); t.Before(set.since) {
			set.since = t
		}
	}
	if k, ok := set.RSA.Private.(*rsa.PrivateKey); !ok || k.N.BitLen() < rsaBits || set.Ed25519.Private == nil {
		return nil, fmt.Errorf("%s does not hold an RSA key of at least %d bits and an Ed25519 key", dir, rsaBits)
	}
	return set, nil
}

// multikeys returns the public halves of the current Ed25519 key and of the retired ones, as the
// actor publishes them (FEP-521a).
func (s *keyset) multikeys(owner string) []any {
	publish := func(id string, k ed25519.PublicKey) any {
		return vocab.Doc{"id": id, "type": "Multikey", "controller": owner, "publicKeyMultibase": signature.MarshalMultikey(k)}
	}
	all := []any{publish(s.Ed25519.ID, s.Ed25519.Private.Public().(ed25519.PublicKey))}
	for _, r := range s.retired {
		all = append(all, publish(owner+r.fragment, r.key))
	}
	return all
}

// isRotated reports whether the actor had other keys before.
func (s *keyset) isRotated() bool { return !strings.HasSuffix(s.Ed25519.ID, ed25519Fragment) }

// pem returns the public half of the RSA key as it is published.
func (s *keyset) pem() string {
	return signature.MarshalPublicKeyPEM(s.RSA.Private.Public().(*rsa.PublicKey))
}
