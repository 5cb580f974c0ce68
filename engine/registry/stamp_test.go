package registry

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStampsTellFilesThatChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got, err := f.Stamps(); err != nil || len(got) != 0 {
		t.Errorf("without a folder: %v, %v", got, err)
	}
	alice := username(t, "alice")
	if err := f.CreateUser(alice); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"bob", "Not-a-user"} { // bob's folder has only keys
		if err := os.MkdirAll(filepath.Join(f.dir, "users", folder, "keys"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	first, err := f.Stamps()
	if err != nil || len(first) != 1 {
		t.Fatalf("stamps %v, %v, want alice's", first, err)
	}
	if again, err := f.Stamps(); err != nil || again[alice] != first[alice] {
		t.Errorf("stamps %v, %v, want the same", again, err)
	}
	if err := f.SetMember(alice, "profile.name", "Alice"); err != nil {
		t.Fatal(err)
	}
	if after, err := f.Stamps(); err != nil || after[alice] == first[alice] {
		t.Errorf("stamps %v, %v, want another one", after, err)
	}
}
