// Package registry holds the configuration that may change while the engine runs: the policy of
// the server, and a file per user. The files are authoritative. They may be edited by hand, and
// a change takes effect within a second.
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

// Registry reads and writes the configuration files of one instance. It is safe for concurrent
// use, also by several processes on the same folders.
type Registry struct {
	usersDir   string
	serverFile string
	log        *slog.Logger
	now        func() time.Time
	server     *file[Server]

	mu    sync.Mutex
	users map[vocab.Username]*file[User] // users without a file use no memory here
}

// New returns the registry of <dataDir>/registry/server.json and
// <usersDir>/<username>/config.json. A file is read when its value is first asked for. If a file
// does not exist, the defaults hold.
func New(dataDir, usersDir string, log *slog.Logger) *Registry {
	r := &Registry{usersDir: usersDir, log: log.With("component", "registry"), now: time.Now, users: map[vocab.Username]*file[User]{}}
	r.serverFile = filepath.Join(dataDir, "registry", "server.json")
	r.server = newFile(r, r.serverFile, maxServerFile, decodeServer)
	return r
}

// Server returns the current policy. The slices in it are shared, so they must not be changed.
// While the file is not valid, the last good policy is returned, and Problem returns the reason.
// Server returns an error only if the file has not been valid since the start.
func (r *Registry) Server() (Server, error) {
	return r.server.readValue()
}

// User returns the configuration of u, or the defaults if there is no file. The slices in it are
// shared, so they must not be changed. While the file is not valid, the last good configuration is
// returned, or ClosedUser if there was none, and Problem returns the reason.
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

// Problem returns the reason why the configuration file of u cannot be used now, or nil if there
// is none. For the zero Username it examines the file of the policy.
func (r *Registry) Problem(u vocab.Username) error {
	if u.IsZero() {
		return r.server.findProblem()
	}
	f := r.userFile(u)
	r.User(u) // drops the entry of a file that does not exist
	return f.findProblem()
}

// File returns the path of the configuration file of u, which may not exist. For the zero
// Username it returns the path of the policy's file.
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

// UpdateServer calls the function change with a copy of the policy in the file. It writes the
// changed copy if that function returns true and no error. It fails if the file is not valid.
// Other updates wait meanwhile, in other processes too. Readers see either the old policy or the
// new one; once UpdateServer has returned, all readers in this process see the new one.
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

// UpdateUser calls the function change with the configuration of u in the file, and writes the
// changed configuration if that function returns no error. Other updates wait meanwhile, in other
// processes too. UpdateUser makes the folder if there is none. The fault is Invalid, with a
// pointer into the file, if a value is refused, and Config if the file is not valid.
func (r *Registry) UpdateUser(u vocab.Username, change func(*User) error) error {
	return r.changeUser(u, change, true)
}

// CheckUpdate returns the error that UpdateUser would return, and writes nothing.
func (r *Registry) CheckUpdate(u vocab.Username, change func(*User) error) error {
	return r.changeUser(u, change, false)
}

func (r *Registry) changeUser(u vocab.Username, change func(*User) error, write bool) error {
	return r.userFile(u).updateValue(func(c User) (User, bool, error) {
		c.Profile.Fields, c.Profile.Mentions, c.Languages = slices.Clone(c.Profile.Fields), slices.Clone(c.Profile.Mentions), slices.Clone(c.Languages)
		if err := change(&c); err != nil {
			return c, false, err
		}
		err := c.validateUser()
		if e := fault.Of(err); e != nil {
			err = fault.Wrap(fault.Invalid, e.Public, err).At(e.Pointer)
		}
		return c, write, err
	})
}

// CreateUser writes ExampleUser to the file of u, unless there is a file.
func (r *Registry) CreateUser(u vocab.Username) error { return CreateFile(r.File(u), ExampleUser) }

// TouchUser renews the time of u's file, and creates the file if there is none. So the serving
// process reads the file again, and announces the actor of u to other servers if the actor has
// changed.
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

// ExampleUser returns a configuration file in which every member has its default, so that people
// see which members there are.
func ExampleUser() ([]byte, error) { return encodeFile(DefaultUser()) }

// ReadUser returns the content of the file of u, valid or not. It returns nil if there is no
// file.
func (r *Registry) ReadUser(u vocab.Username) ([]byte, error) { return r.userFile(u).readContent() }

// ReplaceUser writes the parameter after into the file of u if the present content equals the
// parameter before. The fault is Invalid if the new content is not valid, and Conflict if the file
// has changed.
func (r *Registry) ReplaceUser(u vocab.Username, before, after []byte) error {
	return r.userFile(u).replaceContent(before, after)
}
