package embedded

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

// account is the system user that PostgreSQL runs as: that of this process, except for root, which
// PostgreSQL refuses.
type account struct {
	name     string
	uid, gid int
	drop     bool // this process is root and the children are not
	shared   bool // it is nobody, as which many programs run: all of them can read what it owns
}

// accounts looks users up by name, as user.Lookup does.
type accounts func(name string) (*user.User, error)

// chooseAccount returns this process's own account. For root it is the owner of the cluster, else
// of the data directory unless that is nobody, else lightweb or postgres.
func chooseAccount(ctx context.Context, dir, data string) (account, error) {
	a := account{uid: os.Geteuid(), gid: os.Getegid()}
	if a.uid == 0 {
		var err error
		if a, err = accounts(user.Lookup).unprivileged(dir, data); err != nil {
			return account{}, err
		}
	}
	name, err := nameOf(ctx, a.uid)
	if err != nil {
		return account{}, fault.Wrap(fault.Config, fmt.Sprintf("user %d has no name on this system, and PostgreSQL needs one", a.uid), err).
			WithHint("run as a user that /etc/passwd has, or use nss_wrapper")
	}
	a.name = name
	return a, nil
}

func (look accounts) unprivileged(dir, data string) (account, error) {
	a := account{drop: true}
	nobody, _, known := look.named("nobody")
	if st, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		if a.uid, a.gid = ownerOf(st); a.uid == 0 {
			return a, fault.New(fault.Config, "the database belongs to root, and PostgreSQL refuses to run as root").
				WithHint("'chown -R postgres " + data + "', or whoever is to run it")
		}
		a.shared = known && a.uid == nobody
		return a, nil
	}
	if st, err := os.Stat(dir); err == nil {
		if a.uid, a.gid = ownerOf(st); a.uid != 0 && !(known && a.uid == nobody) {
			return a, nil
		}
	}
	for _, name := range []string{"lightweb", "postgres"} {
		if uid, gid, ok := look.named(name); ok && uid != 0 {
			return account{uid: uid, gid: gid, drop: true}, nil
		}
	}
	return a, fault.New(fault.Config, "PostgreSQL refuses to run as root, and there is no user lightweb or postgres").
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

// wayFromNobody returns the commands that give a cluster of nobody's at the paths to an account of
// its own.
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

func ownerOf(st os.FileInfo) (uid, gid int) {
	s := st.Sys().(*syscall.Stat_t)
	return int(s.Uid), int(s.Gid)
}

// nameOf returns the name of uid. Users may come from where only the C library looks, so id(1) is
// asked too.
func nameOf(ctx context.Context, uid int) (string, error) {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username, nil
	}
	out, err := exec.CommandContext(ctx, "id", "-nu", strconv.Itoa(uid)).Output()
	if err != nil {
		return "", fmt.Errorf("look up user %d: %w", uid, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// attributes makes a child run as a, in a session of its own: the terminal's Ctrl-C is for the
// engine, and must not reach a server that others may be using.
func (a account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid), Groups: []uint32{}}
	}
	return attr
}

// run runs program as a, in dir, and returns what it printed. When ctx ends the program and its
// children are killed.
func (a account) run(ctx context.Context, dir, program string, args ...string) (string, error) {
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
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, environment(), a.attributes()
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

// environment is what PostgreSQL needs of ours. The rest stays here: it may hold secrets, and PG…
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

// reach proves that a can enter dir and run the server: as root we see no closed door that a then
// stands before.
func (a account) reach(ctx context.Context, dir, postgres string) error {
	if !a.drop {
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
	said, err := a.run(ctx, "/", "/bin/sh", append([]string{"-c", script, postgres}, way...)...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() == 3:
		return fault.Wrap(fault.Config, "the user PostgreSQL runs as cannot enter the data directory", fmt.Errorf("%s is closed to %s", said, a.name)).
			WithHint("'chmod o+x " + said + "', or choose another data directory, such as /var/lib/lightweb")
	case errors.As(err, &exit) && exit.ExitCode() == 4:
		return fault.Wrap(fault.Config, "the user PostgreSQL runs as cannot run its server", fmt.Errorf("%s is closed to %s", postgres, a.name)).
			WithHint("install PostgreSQL where every user can run it: 'apt-get install postgresql'")
	}
	return fmt.Errorf("become user %s: %w", a.name, err)
}
