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

// Account is the system user that a private server runs as: the user of this process, unless
// that is root.
type Account struct {
	Name     string
	UID, GID int
	Drop     bool // true: this process is root, and the server runs as another user
	Shared   bool // true: the user is nobody. Many programs run as nobody, and all of them can read its files
}

// accounts looks up users by name, as user.Lookup does.
type accounts func(name string) (*user.User, error)

// ChooseAccount returns the account of this process, unless that is root. For root it returns the
// owner of the file at the path made, which exists once the server has run. The fault is Config
// if that owner is root. Without that file it returns the owner of the data directory dir, unless
// that is root or nobody, or else the user lightweb, or else the user postgres.
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

// named returns the number of the user who has the given name, and the number of the user's group.
// ok is false when there is no such user.
func (look accounts) named(name string) (uid, gid int, ok bool) {
	u, err := look(name)
	if err != nil {
		return 0, 0, false
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	return uid, gid, err1 == nil && err2 == nil
}

// WayFromNobody returns commands for the operator of a server that runs as nobody. They give the
// files of the server to a dedicated user.
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

// OwnerOf returns the user number and group number of a file's owner.
func OwnerOf(st os.FileInfo) (uid, gid int) {
	s := st.Sys().(*syscall.Stat_t)
	return int(s.Uid), int(s.Gid)
}

// NameOf returns the name of uid. Some users are known only to the C library, so it runs id(1)
// if os/user does not find the name.
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

// Attributes returns the attributes with which a child process runs under this account, in a
// session of its own. So Ctrl-C in the terminal reaches the engine, but not a server that other
// processes may be using.
func (a Account) Attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.Drop {
		attr.Credential = &syscall.Credential{Uid: uint32(a.UID), Gid: uint32(a.GID), Groups: []uint32{}}
	}
	return attr
}

// Run runs the program under this account, in the folder dir, and returns the first 4 KiB of the
// output. When ctx ends, the program and its children are killed.
func (a Account) Run(ctx context.Context, dir, program string, args ...string) (string, error) {
	return a.run(ctx, nil, dir, program, args)
}

// run is Run for a program that inherits files from its descriptor 3 on.
func (a Account) run(ctx context.Context, files []*os.File, dir, program string, args []string) (string, error) {
	// The output goes to a file, not to a pipe: a server that the program starts would keep the
	// pipe open, and cmd.Run would wait until that server ends.
	out, err := os.CreateTemp("", "lightweb-")
	if err != nil {
		return "", fmt.Errorf("run %s: %w", filepath.Base(program), err)
	}
	defer func() { _ = out.Close() }() // the file is removed already
	if err := os.Remove(out.Name()); err != nil {
		return "", fmt.Errorf("run %s: %w", filepath.Base(program), err)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, environment(), a.Attributes()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, files
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	text := make([]byte, 4096)
	n, _ := out.ReadAt(text, 0) // an error is io.EOF: the program printed less
	said := strings.TrimSpace(string(text[:n]))
	switch {
	case err == nil:
		return said, nil
	case ctx.Err() != nil:
		return said, fmt.Errorf("run %s: %w", filepath.Base(program), ctx.Err())
	}
	return said, fmt.Errorf("run %s: %w: %s", filepath.Base(program), err, said)
}

// environment returns the variables of this process that a server needs. It leaves out all
// others, because they may hold secrets, or be PG… variables that mean another server.
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

// Own makes this account the owner of path, if this process is root and the account is not.
func (a Account) Own(path string) error {
	if !a.Drop {
		return nil
	}
	if err := os.Lchown(path, a.UID, a.GID); err != nil {
		return fmt.Errorf("give to %s: %w", a.Name, err)
	}
	return nil
}

// Reach checks that this account can enter dir and run the program at the path in the parameter
// server. The parameter name is the product name of the program, for messages. The check runs
// under the account, because root can enter directories that the account cannot.
func (a Account) Reach(ctx context.Context, dir, server, name string) error {
	if !a.Drop {
		return nil
	}
	const script = `bin=$0; for d; do cd "$d" 2>/dev/null || { printf %s "$d"; exit 3; }; done; test -x "$bin" || exit 4`
	var way []string // dir and all its parents, from the root down
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
