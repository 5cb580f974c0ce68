// Package registry holds the configuration that may change while the engine serves: the server's
// policy and a file per user. The files are the truth. They may be edited by hand, and what was
// written is followed within a second.
package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Registry reads and writes the configuration files of one instance. It may be used by many
// goroutines, and beside other processes that use the same folders.
type Registry struct {
	usersDir   string
	serverFile string
	log        *slog.Logger
	now        func() time.Time
	server     *file[Server]

	mu    sync.Mutex
	users map[vocab.Username]*file[User] // of those who have a file; the others cost nothing
}

// New returns the registry of <dataDir>/registry/server.json and <usersDir>/<username>/config.json.
// Nothing is read before it is asked for, and a file that is not there stands for the defaults.
func New(dataDir, usersDir string, log *slog.Logger) *Registry {
	r := &Registry{usersDir: usersDir, log: log.With("component", "registry"), now: time.Now, users: map[vocab.Username]*file[User]{}}
	r.serverFile = filepath.Join(dataDir, "registry", "server.json")
	r.server = newFile(r, r.serverFile, maxServerFile, decodeServer)
	return r
}

// Server returns the current policy. The slices in it are shared: they must not be changed. While
// the file is broken the last good policy is returned and Problem says why; the error here is for a
// file of which nothing good was ever read.
func (r *Registry) Server() (Server, error) {
	return r.server.readValue()
}

// User returns the configuration of u, the defaults when there is no file. The slices in it are
// shared: they must not be changed. While the file is broken the last good one is returned,
// ClosedUser when there was none, and Problem says why.
func (r *Registry) User(u vocab.Username) User {
	f := r.userFile(u)
	c, err := f.readValue()
	if err != nil {
		return ClosedUser()
	}
	if f.isAbsent() {
		r.mu.Lock()
		delete(r.users, u)
		r.mu.Unlock()
	}
	return c
}

// Problem returns why the configuration of u, for nobody the policy, cannot be used as it is now;
// nil when it can.
func (r *Registry) Problem(u vocab.Username) error {
	if u.IsZero() {
		return r.server.findProblem()
	}
	f := r.userFile(u)
	r.User(u) // forgets a file that is not there
	return f.findProblem()
}

// File returns the path of the configuration of u, for nobody of the policy. The file need not be
// there.
func (r *Registry) File(u vocab.Username) string {
	if u.IsZero() {
		return r.serverFile
	}
	return filepath.Join(r.usersDir, u.String(), "config.json")
}

func (r *Registry) userFile(u vocab.Username) *file[User] {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.users[u]
	if f == nil {
		f = newFile(r, r.File(u), maxUserFile, decodeUser)
		f.unusable = "configuration file refused: the user is closed to others"
		r.users[u] = f
	}
	return f
}

// UpdateServer replaces the policy by what change makes of the one in the file, if change says so
// and does not fail, and the file is not broken. Other updates meanwhile wait, in other processes
// too. Readers see the old policy or the new one, whole; once it returns, every reader here sees
// the new one.
func (r *Registry) UpdateServer(change func(*Server) (replace bool, err error)) error {
	return r.server.updateValue(func(s Server) (Server, bool, error) {
		s = s.clone()
		replace, err := change(&s)
		if err != nil || !replace {
			return s, false, err
		}
		s, err = s.canonicalServer()
		return s, true, err
	})
}

// UpdateUser replaces the configuration of u by what change makes of the one in the file, as
// UpdateServer does. The folder is made when there is none. The fault is Invalid, and points into
// the file, for a value that is not taken; Config, when the file is broken.
func (r *Registry) UpdateUser(u vocab.Username, change func(*User) error) error {
	return r.userFile(u).updateValue(func(c User) (User, bool, error) {
		c.Profile.Fields, c.Profile.Mentions, c.Languages = slices.Clone(c.Profile.Fields), slices.Clone(c.Profile.Mentions), slices.Clone(c.Languages)
		if err := change(&c); err != nil {
			return c, false, err
		}
		err := c.validateUser()
		if e := fault.Of(err); e != nil {
			err = fault.Wrap(fault.Invalid, e.Public, err).At(e.Pointer)
		}
		return c, true, err
	})
}

// CreateUser writes the example as the file of u, unless there is a file.
func (r *Registry) CreateUser(u vocab.Username) error { return CreateFile(r.File(u), ExampleUser) }

// TouchUser has the serving process look at u's file, and at what others are told of u.
func (r *Registry) TouchUser(u vocab.Username) error {
	if err := r.CreateUser(u); err != nil {
		return err
	}
	now := r.now()
	return os.Chtimes(r.File(u), now, now)
}

// RemoveUser removes the configuration and the pictures of u.
func (r *Registry) RemoveUser(u vocab.Username) error {
	if err := os.RemoveAll(r.picturesOf(u)); err != nil {
		return fmt.Errorf("remove pictures: %w", err)
	}
	if err := os.Remove(r.File(u)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove configuration: %w", err)
	}
	return nil
}

// ExampleUser returns a file that settles nothing: every member has its default, so that
// people see which there are.
func ExampleUser() ([]byte, error) { return encodeFile(DefaultUser()) }

// ReadUser returns what the file of u holds, usable or not; nothing when there is no file.
func (r *Registry) ReadUser(u vocab.Username) ([]byte, error) { return r.userFile(u).readContent() }

// ReplaceUser makes after the content of the file of u, if it held before until now. The fault is
// Invalid when after cannot be used, and Conflict when the file has changed.
func (r *Registry) ReplaceUser(u vocab.Username, before, after []byte) error {
	return r.userFile(u).replaceContent(before, after)
}
