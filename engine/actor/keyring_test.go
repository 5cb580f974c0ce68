package actor

import (
	"crypto/rsa"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestKeysAreMadeOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := NewKeyring(filepath.Join(dir, "users"), filepath.Join(dir, "data"), "https://us.example")
	alice := username(t, "alice")
	if _, err := k.Keys(alice); fault.KindOf(err) != fault.NoUser || len(k.Kinds(alice)) != 0 {
		t.Errorf("Keys before Create = %v, kinds %q", err, k.Kinds(alice))
	}
	if err := k.Create(alice); err != nil {
		t.Fatal(err)
	}
	first, err := k.Keys(alice)
	if err != nil {
		t.Fatal(err)
	}
	if first.RSA.ID != "https://us.example/users/alice#main-key" || first.Ed25519.ID != "https://us.example/users/alice#ed25519-key" {
		t.Errorf("key ids %s, %s", first.RSA.ID, first.Ed25519.ID)
	}
	if n := first.RSA.Private.(*rsa.PrivateKey).N.BitLen(); n < 2048 {
		t.Errorf("SG-22: an RSA key of %d bits", n)
	}
	if err := k.Create(alice); err != nil {
		t.Fatal(err)
	}
	if again, err := NewKeyring(k.usersDir, dir, "https://us.example").Keys(alice); err != nil || !first.RSA.Private.(*rsa.PrivateKey).Equal(again.RSA.Private) {
		t.Errorf("a second Create changed the key, or %v", err)
	}
	if got := k.Kinds(alice); !slices.Equal(got, []string{"ed25519", "rsa"}) {
		t.Errorf("Kinds = %q", got)
	}
	err = filepath.WalkDir(k.usersDir, func(path string, d fs.DirEntry, err error) error {
		info, fail := d.Info()
		if err = errors.Join(err, fail); err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
		if strings.Contains(path, "tmp.") || strings.HasSuffix(path, ".tmp") {
			t.Errorf("%s was left behind", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNobodyHasNoKeys(t *testing.T) {
	t.Parallel()
	k := NewKeyring(t.TempDir(), t.TempDir(), "https://us.example")
	if err := k.CreateInstance(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Keys(vocab.Username{}); fault.KindOf(err) != fault.NoUser {
		t.Errorf("Keys of nobody = %v, want no user: they are the instance's", err)
	}
	if err := k.Create(vocab.Username{}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("Create of nobody = %v", err)
	}
}

func TestKeysOfTheInstanceAreNotMadeByWhoReadsThem(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	_, err := NewKeyring(t.TempDir(), data, "https://us.example").Instance()
	if fault.KindOf(err) != fault.Config || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(fault.Hint(err), "from a backup") {
		t.Errorf("Instance = %v, hint %q, want none, and where they are from", err, fault.Hint(err))
	}
	if left, err := os.ReadDir(data); err != nil || len(left) > 0 {
		t.Errorf("%v in the data directory, %v, want nothing", left, err)
	}
}

func TestRacingProcessesAgreeOnTheKeys(t *testing.T) {
	t.Parallel()
	users, data := t.TempDir(), t.TempDir()
	alice := username(t, "alice")
	var wg sync.WaitGroup
	keys := make([][2]any, 4)
	for i := range keys {
		wg.Go(func() {
			k := NewKeyring(users, data, "https://us.example") // each keyring stands for a process
			if err := k.CreateInstance(); err != nil {
				t.Error(err)
				return
			}
			instance, err := k.Instance()
			if err != nil {
				t.Error(err)
				return
			}
			if err := k.Create(alice); err != nil {
				t.Error(err)
				return
			}
			user, err := k.Keys(alice)
			if err != nil {
				t.Error(err)
				return
			}
			keys[i] = [2]any{instance.RSA.Private.(*rsa.PrivateKey).N.String(), user.RSA.Private.(*rsa.PrivateKey).N.String()}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if k != keys[0] || k[0] == k[1] {
			t.Fatal("two processes use different keys, or two actors the same")
		}
	}
}

func TestHalfMadeKeysAreCompleted(t *testing.T) {
	t.Parallel()
	k := NewKeyring(t.TempDir(), t.TempDir(), "https://us.example")
	alice := username(t, "alice")
	writeKeys(t, k.Dir(alice), 0)
	if err := os.Remove(keyFile(k.Dir(alice), "ed25519")); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(k.Dir(alice), ".ed25519.pem.123.tmp") // a killed process leaves such a file
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	_, err := k.Keys(alice)
	if fault.KindOf(err) != fault.NoUser || !strings.HasPrefix(fault.Hint(err), "restore "+k.Dir(alice)+" from a backup") {
		t.Errorf("Keys = %v, hint %q", err, fault.Hint(err))
	}
	if err := k.Create(alice); err != nil {
		t.Fatal(err)
	}
	got, err := k.Keys(alice)
	if r, _ := theirs(t, 0); err != nil || !r.Equal(got.RSA.Private) {
		t.Errorf("the key that was there was replaced, or %v", err)
	}
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an abandoned key is still there: %v", err)
	}
}

func TestBrokenKeysSayNothingOutside(t *testing.T) {
	t.Parallel()
	alice := username(t, "alice")
	good := keyFiles()[0]
	for _, tt := range []struct{ name, rsa, ed25519 string }{
		{"no PEM", "hello", string(good["ed25519"])},
		{"empty", "", string(good["ed25519"])},
		{"two blocks", string(good["rsa"]) + string(good["rsa"]), string(good["ed25519"])},
		{"the wrong kind", string(good["ed25519"]), string(good["ed25519"])},
		{"both the same", string(good["rsa"]), string(good["rsa"])},
		{"a public key", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", string(good["ed25519"])},
		{"not DER", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", string(good["ed25519"])},
		{"too long", strings.Repeat("\n", maxKeyFile) + string(good["rsa"]), string(good["ed25519"])},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := NewKeyring(t.TempDir(), t.TempDir(), "https://us.example")
			writeKeys(t, k.Dir(alice), 0)
			for kind, data := range map[string]string{"rsa": tt.rsa, "ed25519": tt.ed25519} {
				if err := os.WriteFile(keyFile(k.Dir(alice), kind), []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := k.Keys(alice)
			if fault.KindOf(err) != fault.Config || strings.Contains(fault.Public(err), "/") {
				t.Errorf("Keys = %v, public %q; want Config and no path", err, fault.Public(err))
			}
		})
	}
}

func TestReplacedKeysAreNoticed(t *testing.T) {
	t.Parallel()
	c := &clock{t: time.Now()}
	k := NewKeyring(t.TempDir(), t.TempDir(), "https://us.example")
	k.now = c.now
	alice := username(t, "alice")
	is := func(set int) {
		t.Helper()
		got, err := k.Keys(alice)
		if r, _ := theirs(t, set); err != nil || !r.Equal(got.RSA.Private) {
			t.Errorf("the keys are not set %d, or %v", set, err)
		}
	}
	writeKeys(t, k.Dir(alice), 0)
	is(0)
	if err := os.RemoveAll(k.Dir(alice)); err != nil {
		t.Fatal(err)
	}
	writeKeys(t, k.Dir(alice), 1)
	is(0)
	c.pass(lookEvery)
	is(1)
	if err := os.RemoveAll(k.Dir(alice)); err != nil {
		t.Fatal(err)
	}
	c.pass(lookEvery)
	if _, err := k.Keys(alice); fault.KindOf(err) != fault.NoUser {
		t.Errorf("Keys of a user whose keys were removed = %v", err)
	}
}

// FRS-05: only this account may be able to read a private key. The key must not be a link either,
// because a link could lead to any file.
func TestKeyFilesThatOthersCanReachAreRefused(t *testing.T) {
	t.Parallel()
	alice := username(t, "alice")
	path := func(k *Keyring) string { return keyFile(k.Dir(alice), "rsa") }
	mode := func(m fs.FileMode) func(*testing.T, *Keyring) {
		return func(t *testing.T, k *Keyring) {
			if err := os.Chmod(path(k), m); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name    string
		prepare func(*testing.T, *Keyring)
		want    string // the public text of the refusal; empty if the keys are accepted
	}{
		{"its owner may write", mode(0o600), ""},
		{"its owner may only read", mode(0o400), ""},
		{"everybody may read", mode(0o604), "the key file rsa.pem is open to other accounts (mode 0604)"},
		{"everybody may write", mode(0o666), "the key file rsa.pem is open to other accounts (mode 0666)"},
		{"the group may read", mode(0o640), "the key file rsa.pem is open to other accounts (mode 0640)"},
		{"others may execute", mode(0o601), "the key file rsa.pem is open to other accounts (mode 0601)"},
		{"a link to a key of ours", func(t *testing.T, k *Keyring) {
			if err := errors.Join(os.Rename(path(k), path(k)+".real"), os.Symlink(path(k)+".real", path(k))); err != nil {
				t.Fatal(err)
			}
		}, "the key file rsa.pem is a link"},
		{"a folder", func(t *testing.T, k *Keyring) {
			if err := errors.Join(os.Remove(path(k)), os.Mkdir(path(k), 0o700)); err != nil {
				t.Fatal(err)
			}
		}, "the key file rsa.pem is not a file"},
		{"of another account", func(_ *testing.T, k *Keyring) { k.uid++ }, "the key file ed25519.pem belongs to another account"},
		{"of a third account, read by root", func(t *testing.T, k *Keyring) {
			if os.Geteuid() != 0 {
				t.Skip("needs root to give files away")
			}
			if err := os.Chown(path(k), 54321, 54321); err != nil {
				t.Fatal(err)
			}
		}, "the key file rsa.pem belongs to another account"},
		{"of the owner of users_dir, read by root", func(_ *testing.T, k *Keyring) { k.uid = 0 }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := NewKeyring(t.TempDir(), t.TempDir(), "https://us.example")
			writeKeys(t, k.Dir(alice), 0)
			tt.prepare(t, k)
			_, err := k.Keys(alice)
			if _, readErr := k.ReadFile(path(k)); (readErr == nil) != (tt.want == "") {
				t.Errorf("ReadFile: %v", readErr)
			}
			if tt.want == "" {
				if err != nil {
					t.Errorf("Keys: %v", err)
				}
				return
			}
			if fault.KindOf(err) != fault.Config || fault.Public(err) != tt.want {
				t.Errorf("Keys: %v, public %q; want Config and %q", err, fault.Public(err), tt.want)
			}
			if !strings.Contains(fault.Hint(err), "chmod 600 "+k.Dir(alice)) {
				t.Errorf("hint %q, want it to name chmod and the file", fault.Hint(err))
			}
		})
	}
}

// While a key is refused, each request reads it again. The log has one line for each state of the
// key.
func TestRefusedKeysAreLoggedOncePerState(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	c := &clock{t: time.Now()}
	k := NewKeyring(t.TempDir(), t.TempDir(), "https://us.example")
	k.Log, k.now = slog.New(slog.NewTextHandler(&log, nil)), c.now
	alice := username(t, "alice")
	writeKeys(t, k.Dir(alice), 0)
	for n, mode := range []fs.FileMode{0o600, 0o644, 0o640, 0o600, 0o644} {
		if err := os.Chmod(keyFile(k.Dir(alice), "rsa"), mode); err != nil {
			t.Fatal(err)
		}
		c.pass(lookEvery)
		for range 5 {
			_, err := k.Keys(alice)
			if (err == nil) != (mode == 0o600) || err != nil && !fault.IsLogged(err) {
				t.Errorf("look %d with mode %o: %v", n, mode, err)
			}
			c.pass(lookEvery)
		}
	}
	if got := strings.Count(log.String(), "keys could not be read"); got != 3 {
		t.Errorf("the log tells of refused keys %d times, want once for each of 3 states:\n%s", got, log.String())
	}
	if !strings.Contains(log.String(), "chmod 600") || !strings.Contains(log.String(), "user=alice") {
		t.Errorf("the log names no user or no way out: %s", log.String())
	}
}
