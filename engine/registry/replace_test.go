package registry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestCreateFileNeverReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "key")
	wins := make(chan string, 4)
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			mine := fmt.Sprint("content ", n)
			if err := CreateFile(path, func() ([]byte, error) { return []byte(mine), nil }); err != nil {
				t.Error(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			wins <- string(got)
		})
	}
	all.Wait()
	first := <-wins
	for range 3 {
		if got := <-wins; got != first || !strings.HasPrefix(got, "content ") {
			t.Errorf("one found %q, another %q", first, got)
		}
	}
	err := CreateFile(path, func() ([]byte, error) { return nil, errors.New("made again") })
	if err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("folder holds %v, %v, want the file alone", left, err)
	}
	for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want mode %v", path, info, err, want)
		}
	}
	broken := errors.New("no content")
	other := filepath.Join(filepath.Dir(path), "other")
	if err := CreateFile(other, func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("CreateFile = %v, want %v", err, broken)
	}
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
}
