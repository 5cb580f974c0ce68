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
	// lookEvery is the least time between two checks of one file for changes, apart from the
	// checks that a write makes.
	lookEvery = 200 * time.Millisecond
	// settledAfter is the age that a file must have when it is read, so that its time and size
	// show every later change. A younger file is read again at the next check, because a file
	// system that stores times in steps of two seconds may show the same time and size after a
	// change.
	settledAfter = 2 * time.Second
)

// file is one configuration file. It is checked for changes when its value is asked for.
type file[T any] struct {
	path   string
	limit  int64
	decode func([]byte) (T, error) // if there is no data, it returns the defaults
	in     *Registry

	// unusable is the text that is logged if the file has no good value. If it is empty, nothing
	// is logged then, because readValue returns the error.
	unusable string

	mu      sync.Mutex // held while the file is checked or written
	ours    bool       // this process has just written the file, so the change is not logged
	current atomic.Pointer[reading[T]]
}

// reading is the result of the last check of a file. It is never changed once published.
type reading[T any] struct {
	value T
	// good says that value can be used, because it is from a valid file or the defaults. While err
	// is set, value is the last good one.
	good bool
	err  error // why the present file cannot be used

	looked  time.Time
	info    fs.FileInfo // describes the file that was read, valid or not; nil if there is no file
	digest  [sha256.Size]byte
	settled bool
	missing bool // the last check was the first that found no file; the old value still holds
}

func newFile[T any](r *Registry, path string, limit int64, decode func([]byte) (T, error)) *file[T] {
	return &file[T]{path: path, limit: limit, decode: decode, in: r}
}

// readValue returns the current value. It returns an error only if there is no good value.
// Reading a long file takes seconds; while one goroutine reads a changed file, the others get
// the last good value, or wait if there is none.
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

// isStale reports whether the file has to be checked again.
func (f *file[T]) isStale(c *reading[T]) bool {
	return c == nil || f.in.now().Sub(c.looked) >= lookEvery
}

// updateValue calls the function change with the value in the file. If the second result is true,
// it writes the value that change returns. Other updates wait meanwhile, in other processes too.
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

// holdFile calls the function work while it holds the locks that all writers of the file take, in
// this and in other processes.
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

// replaceContent replaces the content of the file. A person has read the content "before", which
// is empty if there was no file, and has written the content "after". The fault is Invalid if
// decode refuses the new content, and Conflict if the file has changed meanwhile.
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

// checkContent returns the reason why data cannot be the content of the file, or nil if there is
// none.
func (f *file[T]) checkContent(data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return badConfig("the file is empty")
	}
	_, err := f.decode(data)
	return err
}

// readContent returns the content of the file, valid or not. It returns nil if there is no file.
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

// writeValue writes a value to the file, and makes it the current one. A value that is too long
// to be read again is not written. The caller holds mu.
func (f *file[T]) writeValue(v T) error {
	doc, err := encodeFile(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", f.path, err)
	}
	return f.writeContent(doc)
}

// writeContent writes a valid document to the file, and makes its value the current one. The
// caller holds mu.
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

// encodeFile returns a configuration as indented JSON.
func encodeFile(v any) ([]byte, error) {
	var doc bytes.Buffer
	e := json.NewEncoder(&doc)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return doc.Bytes(), err
}

// findProblem checks the file, and returns the reason why it cannot be used now, or nil.
func (f *file[T]) findProblem() error {
	_, _ = f.readValue() // checks the file
	return f.current.Load().err
}

// isAbsent reports whether there is no file. A file that disappears counts as present until a
// second check has not found it.
func (f *file[T]) isAbsent() bool {
	c := f.current.Load()
	return c != nil && c.info == nil && c.err == nil
}

// lookAtFile checks the file, reads it if it has changed, and publishes the result.
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
		// Many editors move the old file away before they write the new one. The old
		// configuration must stay in force meanwhile.
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

// takeContent decodes data into the value of next. The parameter info describes the file that
// contained the data. If info is nil, there is no file, and the value becomes the defaults.
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

// refuseContent sets the error of next, keeps the last good value, and logs the error once. If
// there is no good value, readValue returns the error.
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
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// readFile returns the content of the file, and its FileInfo from when it was opened.
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
