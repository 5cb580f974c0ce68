package registry

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestPicturesHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	alice := username(t, "alice")
	name, err := f.StorePicture(alice, []byte("one"), "png")
	if err != nil || !pictureForm.MatchString(name) {
		t.Fatalf("StorePicture = %q, %v", name, err)
	}
	if again, err := f.StorePicture(alice, []byte("one"), "png"); err != nil || again != name {
		t.Errorf("the same picture is stored as %q, %v", again, err)
	}
	if other, err := f.StorePicture(alice, []byte("two"), "png"); err != nil || other == name {
		t.Errorf("another picture is stored as %q, %v", other, err)
	}
	opened, err := f.OpenPicture(alice, name)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if got, err := io.ReadAll(opened); err != nil || string(got) != "one" {
		t.Errorf("the picture is %q, %v", got, err)
	}
	if _, err := f.StorePicture(alice, []byte("three"), "svg"); err == nil {
		t.Error("an SVG is stored")
	}
	secret := filepath.Join(f.dir, "users", "alice", "media", "secret.png")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := "0123456789abcdef0123456789abcdef.png"
	if err := os.Mkdir(filepath.Join(f.dir, "users", "alice", "media", link), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{"", "secret.png", "../config.json", "..", "../media/" + name, name + "/", "/" + name, name + "\x00", name[:30] + ".png", link, "ffffffffffffffffffffffffffffffff.png"} {
		if _, err := f.OpenPicture(alice, none); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("OpenPicture(%q) = %v, want none", none, err)
		}
	}
	if _, err := f.OpenPicture(username(t, "bob"), name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("bob's picture: %v, want none", err)
	}
}

func TestAPictureIsRestoredUnderItsName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	alice := username(t, "alice")
	name := namePicture([]byte("one")) + ".png"
	if err := f.RestorePicture(alice, name, strings.NewReader("one")); err != nil {
		t.Fatal(err)
	}
	if all, err := f.ListPictures(alice); err != nil || len(all) != 1 || all[0] != name {
		t.Errorf("ListPictures = %q, %v, want %s", all, err, name)
	}
	for why, err := range map[string]error{
		"another picture": f.RestorePicture(alice, name, strings.NewReader("two")),
		"nobody's":        f.RestorePicture(vocab.Username{}, name, strings.NewReader("one")),
		"too large":       f.RestorePicture(alice, name, strings.NewReader(strings.Repeat("x", maxPicture+1))),
	} {
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v, want fault.Invalid", why, err)
		}
	}
}

func TestOldPicturesAreRemovedButForTwo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	alice := username(t, "alice")
	if err := f.PrunePictures(alice); err != nil {
		t.Errorf("without pictures: %v", err)
	}
	var names []string
	for n := range 6 {
		f.at = f.at.Add(time.Minute)
		name, err := f.StorePicture(alice, fmt.Append(nil, n), "jpg")
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	media := filepath.Join(f.dir, "users", "alice", "media")
	if err := os.WriteFile(filepath.Join(media, "of-the-user.jpg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.SetMember(alice, "profile.icon", string(vocab.ID("https://example.org/users/alice/media/"+names[0]))); err != nil {
		t.Fatal(err)
	}
	if err := f.PrunePictures(alice); err != nil {
		t.Fatal(err)
	}
	for n, name := range append(names, "of-the-user.jpg") {
		_, err := os.Stat(filepath.Join(media, name))
		if kept := err == nil; kept != (n == 0 || n >= 4) {
			t.Errorf("picture %d is kept: %v", n, kept)
		}
	}
}
