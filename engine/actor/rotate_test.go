package actor

import (
	"crypto/ed25519"
	"crypto/rsa"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/transport"
	"github.com/lightweb/lightweb/engine/vocab"
)

// ring returns a keyring, the user alice, and alice's keys in the keyring.
func ring(t *testing.T) (*Keyring, vocab.Username, transport.Keys) {
	t.Helper()
	k, alice := NewKeyring(t.TempDir(), t.TempDir(), "https://us.example"), username(t, "alice")
	if err := k.Create(alice); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-1000 * time.Hour)
	for _, path := range k.Files(alice) {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	return k, alice, keysOf(t, k, alice)
}

func keysOf(t *testing.T, k *Keyring, u vocab.Username) transport.Keys {
	t.Helper()
	keys, err := k.Keys(u)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// shownKeys returns the ids of those keys in alice's document that can verify alice's proofs. The
// current key comes first.
func shownKeys(t *testing.T, k *Keyring, u vocab.Username) (ids []string) {
	t.Helper()
	d, err := NewLocal("https://us.example", k, &people{}, "lightweb").Document(u)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range d.Subs("assertionMethod") {
		ids = append(ids, strings.TrimPrefix(m.Text("id"), "https://us.example/users/alice"))
	}
	return ids
}

func TestRotatedKeysAreNewAndWhatTheOldOneHasProvenStaysProven(t *testing.T) {
	t.Parallel()
	k, alice, before := ring(t)
	local := NewLocal("https://us.example", k, &people{}, "lightweb")
	since, digest := mustDocument(t, local, alice)["published"], local.ProfileDigest(alice)
	id, err := k.Rotate(alice)
	if err != nil {
		t.Fatal(err)
	}
	after := keysOf(t, k, alice)
	if after.RSA.ID != before.RSA.ID || after.RSA.Private.(*rsa.PrivateKey).Equal(before.RSA.Private) {
		t.Errorf("the RSA key is %s, the same as before or under another id", after.RSA.ID)
	}
	if after.Ed25519.ID != id || id == before.Ed25519.ID || after.Ed25519.Private.(ed25519.PrivateKey).Equal(before.Ed25519.Private) {
		t.Errorf("the Ed25519 key is %s, want a new one with the id %s", after.Ed25519.ID, id)
	}
	if got := shownKeys(t, k, alice); len(got) != 2 || got[1] != ed25519Fragment {
		t.Errorf("the document shows %q, want the new key and the old one", got)
	}
	d := mustDocument(t, local, alice)
	if key := d.Subs("assertionMethod")[1].Text("publicKeyMultibase"); key != (&keyset{Keys: before}).multikeys("")[0].(vocab.Doc)["publicKeyMultibase"] {
		t.Errorf("the old key is shown as %s", key)
	}
	if d["published"] != since {
		t.Errorf("the actor was made %v, and before %v", d["published"], since)
	}
	if slices.Equal(digest, local.ProfileDigest(alice)) {
		t.Error("others would not be told: what stands for the profile is as before")
	}
	if again, err := k.Rotate(alice); err != nil || again == id || len(shownKeys(t, k, alice)) != 3 {
		t.Errorf("rotated again the id is %s, %v; shown are %q", again, err, shownKeys(t, k, alice))
	}
}

func mustDocument(t *testing.T, l *Local, u vocab.Username) vocab.Doc {
	t.Helper()
	d, err := l.Document(u)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A rotation may be killed between any two steps. A later call finishes it with the keys that the
// rotation has made.
func TestAKilledRotationIsFinishedWithTheKeysThatItMade(t *testing.T) {
	t.Parallel()
	const fragment = ed25519Fragment + "-made"
	move := func(t *testing.T, dir, kind string) {
		if err := os.Rename(keyFile(filepath.Join(dir, "next"), kind), keyFile(dir, kind)); err != nil {
			t.Fatal(err)
		}
	}
	retire := func(t *testing.T, dir string, old transport.Keys) {
		if err := writeRetired(dir, []retiredKey{{ed25519Fragment, time.Now(), old.Ed25519.Private.Public().(ed25519.PublicKey)}}); err != nil {
			t.Fatal(err)
		}
	}
	for name, kill := range map[string]func(t *testing.T, dir string, old transport.Keys){
		"when one key was made": func(t *testing.T, dir string, _ transport.Keys) {
			if err := os.Remove(keyFile(filepath.Join(dir, "next"), "rsa")); err != nil {
				t.Fatal(err)
			}
		},
		"when both keys were made":         func(*testing.T, string, transport.Keys) {},
		"when the old key was retired":     retire,
		"when the first key was put there": func(t *testing.T, dir string, old transport.Keys) { retire(t, dir, old); move(t, dir, "ed25519") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, alice, before := ring(t)
			if err := makeKeys(filepath.Join(k.Dir(alice), "next"), fragment); err != nil {
				t.Fatal(err)
			}
			kill(t, k.Dir(alice), before)
			id, err := k.Rotate(alice)
			if err != nil || !strings.HasSuffix(id, fragment) {
				t.Errorf("the key is %s, %v; want the one that was made", id, err)
			}
			if got := shownKeys(t, k, alice); !slices.Equal(got, []string{fragment, ed25519Fragment}) {
				t.Errorf("shown are %q", got)
			}
			if after := keysOf(t, k, alice); after.RSA.Private.(*rsa.PrivateKey).Equal(before.RSA.Private) {
				t.Error("the RSA key is the old one")
			}
			if isThere(filepath.Join(k.Dir(alice), "next")) {
				t.Error("the folder of the next keys is left")
			}
		})
	}
}

func TestARetiredKeyIsForgottenWhenItIsNotNeeded(t *testing.T) {
	t.Parallel()
	k, alice, _ := ring(t)
	for range 2 {
		if _, err := k.Rotate(alice); err != nil {
			t.Fatal(err)
		}
	}
	all, asked := shownKeys(t, k, alice), 0
	keepSecond := func(time.Time) (bool, error) { asked++; return asked == 2, nil }
	if err := k.PruneRetired(alice, keepSecond); err != nil {
		t.Fatal(err)
	}
	k.sets.drop(alice)
	if got := shownKeys(t, k, alice); !slices.Equal(got, []string{all[0], all[2]}) {
		t.Errorf("shown are %q, want %q without the second", got, all)
	}
}

func TestAFileOfRetiredKeysIsReadOrRefusedWhole(t *testing.T) {
	t.Parallel()
	k, alice, _ := ring(t)
	if _, err := k.Rotate(alice); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(k.RetiredFile(alice))
	if err != nil {
		t.Fatal(err)
	}
	private, err := os.ReadFile(keyFile(k.Dir(alice), "ed25519"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"text":          "keys",
		"a private key": string(private),
		"no id":         strings.Replace(string(good), idFact, "id ", 1),
		"no time":       strings.Replace(string(good), retiredFact, "", 1),
		"a half":        string(good) + string(good[:len(good)/2]),
	} {
		if err := os.WriteFile(k.RetiredFile(alice), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := k.readRetired(k.Dir(alice)); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
}

// While PruneRetired runs, a rotation retires a key. PruneRetired does not forget this key.
func TestPruningForgetsNoKeyThatWasJustRetired(t *testing.T) {
	t.Parallel()
	k, alice, _ := ring(t)
	if _, err := k.Rotate(alice); err != nil {
		t.Fatal(err)
	}
	var second string
	err := k.PruneRetired(alice, func(time.Time) (bool, error) {
		second = keysOf(t, k, alice).Ed25519.ID
		_, err := k.Rotate(alice)
		return false, err
	})
	if err != nil {
		t.Fatal(err)
	}
	k.sets.drop(alice)
	if got := shownKeys(t, k, alice); len(got) != 2 || !strings.HasSuffix(second, got[1]) {
		t.Errorf("the document shows %q, want the newest key and the one before it, %s", got, second)
	}
}
