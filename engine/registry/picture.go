package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxPicture   = 4 << 20 // largest picture that is served, in bytes
	keptPictures = 2       // how many former pictures of a profile are kept, because others may still fetch them
)

// pictureForm is the form of the names of pictures. Files with other names are never opened,
// stored or removed.
var pictureForm = regexp.MustCompile(`^[0-9a-f]{32}\.(?:png|jpg)$`)

// StorePicture stores a picture of u, and returns its name. The name is derived from the data, so
// that no other picture has the same name. The extension is png or jpg.
func (r *Registry) StorePicture(u vocab.Username, data []byte, extension string) (name string, err error) {
	name = namePicture(data) + "." + extension
	if !pictureForm.MatchString(name) {
		return "", fmt.Errorf("store picture %.50q: it has no such name", name)
	}
	file := filepath.Join(r.picturesOf(u), name)
	if err := CreateFile(file, func() ([]byte, error) { return data, nil }); err != nil {
		return "", fmt.Errorf("store picture: %w", err)
	}
	now := r.now()
	// A picture that was stored before becomes the newest again.
	return name, os.Chtimes(file, now, now)
}

// namePicture returns the first part of a picture's name, which is a hash of the picture's data.
func namePicture(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// RestorePicture stores a picture of u from a backup under its old name. The fault is Invalid if
// the name does not match the data.
func (r *Registry) RestorePicture(u vocab.Username, name string, content io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(content, maxPicture+1))
	if err != nil {
		return err
	}
	shown, extension, _ := strings.Cut(name, ".")
	if u.IsZero() || len(data) > maxPicture || shown != namePicture(data) {
		return fault.New(fault.Invalid, fmt.Sprintf("the backup holds another picture under the name %.50q", name))
	}
	_, err = r.StorePicture(u, data, extension)
	return err
}

// ListPictures returns the names of the pictures of u.
func (r *Registry) ListPictures(u vocab.Username) (names []string, err error) {
	all, err := os.ReadDir(r.picturesOf(u))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list pictures: %w", err)
	}
	for _, entry := range all {
		if pictureForm.MatchString(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// OpenPicture opens a picture of u. The error is fs.ErrNotExist if there is no such picture, if it
// is too large, or if the name does not have the form of a picture's name.
func (r *Registry) OpenPicture(u vocab.Username, name string) (*os.File, error) {
	if !pictureForm.MatchString(name) {
		return nil, fs.ErrNotExist
	}
	f, err := openForReading(filepath.Join(r.picturesOf(u), name))
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > maxPicture {
		return nil, errors.Join(err, f.Close(), fs.ErrNotExist)
	}
	return f, nil
}

// PrunePictures removes the pictures of u that the profile does not show any more. It keeps the
// two newest of them, because servers that know an older profile may not have fetched them yet.
func (r *Registry) PrunePictures(u vocab.Username) error {
	names, err := r.ListPictures(u)
	if err != nil {
		return err
	}
	type picture struct {
		name string
		at   time.Time
	}
	var old []picture
	p := r.User(u).Profile
	for _, name := range names {
		if name == path.Base(string(p.Icon)) || name == path.Base(string(p.Image)) {
			continue
		}
		info, err := os.Lstat(filepath.Join(r.picturesOf(u), name))
		if errors.Is(err, fs.ErrNotExist) { // another request has removed it
			continue
		}
		if err != nil {
			return fmt.Errorf("look at picture: %w", err)
		}
		old = append(old, picture{name, info.ModTime()})
	}
	slices.SortFunc(old, func(a, b picture) int { return b.at.Compare(a.at) })
	for _, o := range old[min(len(old), keptPictures):] {
		if err := os.Remove(filepath.Join(r.picturesOf(u), o.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove picture: %w", err)
		}
	}
	return nil
}

func (r *Registry) picturesOf(u vocab.Username) string {
	return filepath.Join(r.usersDir, u.String(), "media")
}
