package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lightweb/lightweb/engine/fault"
)

// Account is the system user that a private server runs as: that of this process, except for root.
type Account struct {
	Name     string
	UID, GID int
	Drop     bool // this process is root and the server is not
	Shared   bool // it is nobody, as which many programs run: all of them can read what it owns
}

// accounts looks users up by name, as user.Lookup does.
type accounts func(name string) (*user.User, error)

// ChooseAccount returns this process's own account. For root it is the owner of made, which the
// server owns once it has run, else of the data directory unless that is nobody, else lightweb or
// postgres.
func ChooseAccount(ctx context.Context, dir, made string) (Account, error) {
	a := Account{UID: os.Geteuid(), GID: os.Getegid()}
	if a.UID == 0 {
		var err error
		if a, err = accounts(user.Lookup).unprivileged(dir, made); err != nil {
			return Account{}, err
		}
	}
	name, err := NameOf(ctx, a.UID)
	if err != nil {
		return Account{}, fault.Wrap(fault.Config, fmt.Sprintf("user %d has no name on this system, and PostgreSQL needs one", a.UID), err).
			WithHint("run as a user that /etc/passwd has, or use nss_wrapper")
	}
	a.Name = name
	return a, nil
}

func (look accounts) unprivileged(dir, made string) (Account, error) {
	a := Account{Drop: true}
	nobody, _, known := look.named("nobody")
	if st, err := os.Stat(made); err == nil {
		data := filepath.Dir(made)
		if a.UID, a.GID = OwnerOf(st); a.UID == 0 {
			return a, fault.New(fault.Config, "the data of a private server belongs to root, and none runs as root").
				WithHint("'chown -R postgres " + data + "', or whoever is to run it")
		}
		a.Shared = known && a.UID == nobody
		return a, nil
	}
	if st, err := os.Stat(dir); err == nil {
		if a.UID, a.GID = OwnerOf(st); a.UID != 0 && !(known && a.UID == nobody) {
			return a, nil
		}
	}
	for _, name := range []string{"lightweb", "postgres"} {
		if uid, gid, ok := look.named(name); ok && uid != 0 {
			return Account{UID: uid, GID: gid, Drop: true}, nil
		}
	}
	return a, fault.New(fault.Config, "no private server runs as root, and there is no user lightweb or postgres").
		WithHint("'useradd --system lightweb'")
}

// named returns the numbers of the user of that name, and whether there is one.
func (look accounts) named(name string) (uid, gid int, ok bool) {
	u, err := look(name)
	if err != nil {
		return 0, 0, false
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return uid, gid, err1 == nil && err2 == nil
}

// WayFromNobody returns the commands that give the files of a server of nobody's to an account of
// its own.
func WayFromNobody(paths ...string) string { return accounts(user.Lookup).wayFromNobody(paths...) }

func (look accounts) wayFromNobody(paths ...string) string {
	to := "lightweb"
	first := ""
	if _, _, ok := look.named("lightweb"); !ok {
		if _, _, ok := look.named("postgres"); ok {
			to = "postgres"
		} else {
			first = "useradd --system lightweb && "
		}
	}
	return "stop every lightweb, then '" + first + "chown -R " + to + ": " + strings.Join(paths, " ") + "'"
}

// OwnerOf returns the numbers of the user and the group that own a file.
func OwnerOf(st os.FileInfo) (uid, gid int) {
	s := st.Sys().(*syscall.Stat_t)
	return int(s.Uid), int(s.Gid)
}

// NameOf returns the name of uid. Users may come from where only the C library looks, so id(1) is
// asked too.
func NameOf(ctx context.Context, uid int) (string, error) {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username, nil
	}
	out, err := exec.CommandContext(ctx, "id", "-nu", strconv.Itoa(uid)).Output()
	if err != nil {
		return "", fmt.Errorf("look up user %d: %w", uid, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Attributes makes a child run as a, in a session of its own: the terminal's Ctrl-C is for the
// engine, and must not reach a server that others may be using.
func (a Account) Attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.Drop {
		attr.Credential = &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID), Groups: []uint32{}}
	}
	return attr
}

// Run runs program as a, in dir, and returns what it printed. When ctx ends the program and its
// children are killed.
func (a Account) Run(ctx context.Context, dir, program string, args ...string) (string, error) {
	// A file, and no pipe: a server started by the program would keep a pipe open, and the wait
	// for its end would last as long as the server.
	out, err := os.CreateTemp("", "lightweb-")
	if err != nil {
		return "", fmt.Errorf("run %s: %w", filepath.Base(program), err)
	}
	defer func() { _ = out.Close() }() // it has no name any more
	if err := os.Remove(out.Name()); err != nil {
		return "", fmt.Errorf("run %s: %w", filepath.Base(program), err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, environment(), a.Attributes()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	text := make([]byte, 4096)
	n, _ := out.ReadAt(text, 0) // io.EOF: it printed less
	said := strings.TrimSpace(string(text[:n]))
	switch {
	case err == nil:
		return said, nil
	case ctx.Err() != nil:
		return said, fmt.Errorf("run %s: %w", filepath.Base(program), ctx.Err())
	}
	return said, fmt.Errorf("run %s: %w: %s", filepath.Base(program), err, said)
}

// environment is what a server needs of ours. The rest stays here: it may hold secrets, and PG…
// variables that mean another server.
func environment() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		keep := slices.Contains([]string{"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH"}, name)
		if keep || strings.HasPrefix(name, "NSS_WRAPPER_") {
			env = append(env, v)
		}
	}
	return env
}

// Own gives path to a, where this process is root.
func (a Account) Own(path string) error {
	if !a.Drop {
		return nil
	}
	if err := os.Lchown(path, a.UID, a.GID); err != nil {
		return fmt.Errorf("give to %s: %w", a.Name, err)
	}
	return nil
}

// Reach proves that a can enter dir and run server, the program of what is called name: as root we
// see no closed door that a then stands before.
func (a Account) Reach(ctx context.Context, dir, server, name string) error {
	if !a.Drop {
		return nil
	}
	const script = `bin=$0; for d; do cd "$d" 2>/dev/null || { printf %s "$d"; exit 3; }; done; test -x "$bin" || exit 4`
	var way []string // dir and all above it, from the top
	for d := dir; ; d = filepath.Dir(d) {
		way = append(way, d)
		if d == filepath.Dir(d) {
			break
		}
	}
	slices.Reverse(way)
	said, err := a.Run(ctx, "/", "/bin/sh", append([]string{"-c", script, server}, way...)...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		return fault.Wrap(fault.Config, "the user "+name+" runs as cannot enter the data directory", fmt.Errorf("%s is closed to %s", said, a.Name)).
			WithHint("'chmod o+x " + said + "', or choose another data directory, such as /var/lib/lightweb")
	case errors.As(err, &exit) && exit.ExitCode() == 4:
		return fault.Wrap(fault.Config, "the user "+name+" runs as cannot run its server", fmt.Errorf("%s is closed to %s", server, a.Name)).
			WithHint("install " + name + " where every user can run it, as apt-get does")
	}
	return fmt.Errorf("become user %s: %w", a.Name, err)
}
