package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

const (
	// lookEvery bounds how often the file system is asked about one file.
	lookEvery = 200 * time.Millisecond
	// settledAfter is how old a file must have been when it was read for its time and size to tell
	// whether it changed since: some file systems count in steps of two seconds.
	settledAfter = 2 * time.Second
)

// file is one configuration file, followed by looking at it when it is asked for.
type file[T any] struct {
	path   string
	limit  int64
	decode func([]byte) (T, error) // of nothing: the defaults
	in     *Registry

	// unusable is logged when there is no good value; empty: get tells everybody who asks.
	unusable string

	mu      sync.Mutex // held while looking and writing
	ours    bool       // what is looked at was just written here: nobody needs to be told of it
	current atomic.Pointer[reading[T]]
}

// reading is what the last look at a file found. It is never changed once published.
type reading[T any] struct {
	value T
	good  bool  // value was once read without fault; while err is set it is the last good one
	err   error // why the file as it is now cannot be used

	looked  time.Time
	info    fs.FileInfo // of the file that was read, broken or not; nil when there is none
	digest  [sha256.Size]byte
	settled bool
	missing bool // info's file was not there at the last look
}

func newFile[T any](r *Registry, path string, limit int64, decode func([]byte) (T, error)) *file[T] {
	return &file[T]{path: path, limit: limit, decode: decode, in: r}
}

// readValue returns the value; an error only when there is no good value. While somebody reads a
// file that changed, which takes seconds when it is long, the others go on with what they have.
func (f *file[T]) readValue() (T, error) {
	c := f.current.Load()
	if f.isStale(c) {
		if c == nil || !c.good {
			f.mu.Lock()
		} else if !f.mu.TryLock() {
			return c.value, nil
		}
		if c = f.current.Load(); f.isStale(c) {
			c = f.lookAtFile()
		}
		f.mu.Unlock()
	}
	if !c.good {
		return c.value, c.err
	}
	return c.value, nil
}

// isStale reports whether a look is due.
func (f *file[T]) isStale(c *reading[T]) bool {
	return c == nil || f.in.now().Sub(c.looked) >= lookEvery
}

// updateValue writes what change makes of the value in the file, if it is to be written. Nobody
// else updates meanwhile.
func (f *file[T]) updateValue(change func(T) (T, bool, error)) error {
	return f.holdFile(func() error {
		c := f.lookAtFile()
		if c.err != nil {
			return c.err
		}
		v, write, err := change(c.value)
		if err != nil || !write {
			return err
		}
		return f.writeValue(v)
	})
}

// holdFile calls work while nobody else writes the file, in other processes neither.
func (f *file[T]) holdFile(work func() error) error {
	unlock, err := LockFolder(filepath.Dir(f.path))
	if err != nil {
		return fmt.Errorf("lock %s: %w", f.path, err)
	}
	defer unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	return work()
}

// replaceContent writes the words of a person, if decode takes them and the file still holds what
// the person has read; of no file that is nothing. The fault is Invalid for words that are not
// taken, and Conflict when the file has changed.
func (f *file[T]) replaceContent(before, after []byte) error {
	if err := f.checkContent(after); err != nil {
		return fault.Wrap(fault.Invalid, fault.Public(err), err)
	}
	return f.holdFile(func() error {
		now, err := f.readContent()
		if err != nil {
			return err
		}
		if !bytes.Equal(now, before) {
			return fault.New(fault.Conflict, filepath.Base(f.path)+" was changed meanwhile").WithCode("changed_meanwhile")
		}
		return f.writeContent(after)
	})
}

// checkContent returns why data cannot be the content of the file.
func (f *file[T]) checkContent(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return badConfig("the file is empty")
	}
	_, err := f.decode(data)
	return err
}

// readContent returns what the file holds, usable or not; nothing when there is no file.
func (f *file[T]) readContent() ([]byte, error) {
	data, _, err := f.readFile()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", f.path, withoutPath(err))
	}
	return data, nil
}

// writeValue writes the value and makes it the current one, for whoever holds mu. A value that
// could not be read again is not written.
func (f *file[T]) writeValue(v T) error {
	doc, err := encodeFile(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", f.path, err)
	}
	return f.writeContent(doc)
}

// writeContent writes what decode takes, for the holder of mu, and makes its value the current one.
func (f *file[T]) writeContent(doc []byte) error {
	if int64(len(doc)) > f.limit {
		return fault.New(fault.TooLarge, fmt.Sprintf("%s would have %d bytes, and at most %d are read", filepath.Base(f.path), len(doc), f.limit))
	}
	if err := ReplaceFile(f.path, doc); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	f.ours = true
	defer func() { f.ours = false }()
	return f.lookAtFile().err
}

// encodeFile returns a configuration as people read it.
func encodeFile(v any) ([]byte, error) {
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return doc.Bytes(), err
}

// findProblem returns why the file as it is now cannot be used.
func (f *file[T]) findProblem() error {
	_, _ = f.readValue() // looks
	return f.current.Load().err
}

// isAbsent reports whether there was no file at the last look, and the look before it.
func (f *file[T]) isAbsent() bool {
	c := f.current.Load()
	return c != nil && c.info == nil && c.err == nil
}

// lookAtFile compares the file with what was read of it, reads it when it differs, and publishes
// what it found.
func (f *file[T]) lookAtFile() *reading[T] {
	old := f.current.Load()
	if old == nil {
		old = &reading[T]{}
	}
	next := *old
	next.looked, next.missing = f.in.now(), false
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && old.good && old.info != nil && !old.missing:
		// Many editors move the old file away before they write the new one: a policy must not
		// vanish meanwhile.
		next.missing = true
	case errors.Is(err, fs.ErrNotExist) && old.good && old.info == nil && old.err == nil:
	case errors.Is(err, fs.ErrNotExist):
		f.takeContent(&next, nil, nil)
	case err != nil:
		next.info = nil
		f.refuseContent(&next, err)
	case old.info == nil || !old.settled || !sameFile(old.info, info):
		data, info, err := f.readFile()
		if err != nil {
			next.info, next.digest = info, [sha256.Size]byte{}
			f.refuseContent(&next, err)
		} else if digest := sha256.Sum256(data); old.info == nil || digest != old.digest {
			next.digest = digest
			f.takeContent(&next, data, info)
		}
		if info != nil {
			next.info, next.settled = info, next.looked.Sub(info.ModTime()) > settledAfter
		}
	}
	f.current.Store(&next)
	return &next
}

func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// takeContent makes data, read from the file of info, the value of next; without a file the
// defaults.
func (f *file[T]) takeContent(next *reading[T], data []byte, info fs.FileInfo) {
	if info != nil && len(bytes.TrimSpace(data)) == 0 {
		f.refuseContent(next, badConfig("the file is empty"))
		return
	}
	v, err := f.decode(data)
	if err != nil {
		f.refuseContent(next, err)
		return
	}
	if (next.good || next.err != nil) && !f.ours {
		f.in.log.Info("configuration file changed", "file", f.path)
	}
	next.value, next.good, next.err, next.info = v, true, nil, info
}

// refuseContent keeps the last good value and says why, once. While there is none, get gives the
// reason to everybody who asks.
func (f *file[T]) refuseContent(next *reading[T], err error) {
	err = fmt.Errorf("read %s: %w", f.path, withoutPath(err))
	words := f.unusable
	if next.good {
		words = "configuration file refused: the last good one holds"
	}
	if words != "" && (next.err == nil || next.err.Error() != err.Error()) {
		f.in.log.Error(words, "file", f.path, "err", err)
	}
	next.err = err
}

func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// readFile returns the file and what it was when it was opened.
func (f *file[T]) readFile() ([]byte, fs.FileInfo, error) {
	r, err := openForReading(f.path)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	info, err := r.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, info, badConfig("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(r, f.limit+1))
	if err != nil {
		return nil, info, err
	}
	if int64(len(data)) > f.limit {
		return nil, info, badConfig("it has more than %d bytes", f.limit)
	}
	return data, info, nil
}
