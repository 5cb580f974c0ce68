package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lightweb/lightweb/engine/daemon"
	"github.com/lightweb/lightweb/engine/fault"
)

// oldest is the oldest major version of PostgreSQL that the engine supports.
const oldest = 15

// binVariable is the environment variable that names the folder of the binaries. If it is set,
// no other folder is searched.
const binVariable = "LIGHTWEB_PG_BIN"

// programs are the binaries that an installation must have.
var programs = []string{"postgres", "initdb", "pg_ctl"}

// installation is a folder with the binaries of one PostgreSQL version.
type installation struct {
	dir, version string
	major        int
}

func (i installation) path(program string) string { return filepath.Join(i.dir, program) }

// places are the folders in which the packages of operating systems put PostgreSQL. They are
// searched because PostgreSQL need not be on the PATH.
var places = []string{
	"/usr/lib/postgresql/*/bin", // Debian
	"/usr/pgsql-*/bin",          // PGDG on Red Hat
	"/usr/libexec/postgresql*",  // Alpine
	"/usr/lib/postgresql*/bin",  // SUSE, Gentoo
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin",
	"/run/current-system/sw/bin", // NixOS
	"/nix/var/nix/profiles/default/bin",
}

// findBin returns the binaries with which the cluster is run. For an existing cluster, the
// parameter want is its major version, and findBin returns only binaries of that version. For a
// new cluster, the parameter is 0, and findBin returns the first binaries that are new enough.
func findBin(ctx context.Context, folders iter.Seq[[]string], want int) (installation, error) {
	var others []string // versions that were found and cannot be used
	for group := range folders {
		var found []installation
		for _, dir := range group {
			if i, ok := examineFolder(ctx, dir); ok {
				found = append(found, i)
			}
		}
		slices.SortStableFunc(found, func(a, b installation) int { return cmp.Compare(b.major, a.major) })
		for _, i := range found {
			if i.major == want || want == 0 && i.major >= oldest {
				return i, nil
			}
			if !slices.Contains(others, i.version) {
				others = append(others, i.version)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return installation{}, fmt.Errorf("look for PostgreSQL: %w", err)
	}
	return installation{}, notFound(want, strings.Join(others, " and "))
}

func notFound(want int, only string) error {
	set := os.Getenv(binVariable)
	switch {
	case only == "" && set != "":
		return fault.New(fault.Config, binVariable+" names no folder of PostgreSQL server binaries").
			WithHint("there must be initdb, pg_ctl and postgres in " + set)
	case only == "":
		return fault.New(fault.Unavailable, "no PostgreSQL server was found, and none is configured").
			WithHint("'apt-get install postgresql', or set LIGHTWEB_DATABASE_URL")
	case want == 0:
		return fault.New(fault.Unavailable, fmt.Sprintf("PostgreSQL %d or newer is needed, and only %s was found", oldest, only)).
			WithHint(fmt.Sprintf("install PostgreSQL %d or newer, or set LIGHTWEB_DATABASE_URL", oldest))
	}
	return fault.New(fault.Config, fmt.Sprintf("the data was made by PostgreSQL %d, and only %s was found", want, only)).
		WithHint(fmt.Sprintf("install postgresql-%d, or name the folder of its binaries in %s", want, binVariable))
}

// listCandidates yields groups of folders that may hold the binaries, in order of preference.
// Within a group the newest version is preferred. If LIGHTWEB_PG_BIN is set, listCandidates
// yields only the folder that the variable names.
func listCandidates(ctx context.Context, dir string) iter.Seq[[]string] {
	if set := os.Getenv(binVariable); set != "" {
		return slices.Values([][]string{{set}})
	}
	return func(yield func([]string) bool) {
		for _, program := range programs {
			p, err := exec.LookPath(program)
			if err != nil {
				continue
			}
			if p, err = filepath.EvalSymlinks(p); err == nil && !yield([]string{filepath.Dir(p)}) {
				return
			}
		}
		out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output()
		if err == nil && !yield([]string{strings.TrimSpace(string(out))}) {
			return
		}
		for _, pattern := range places {
			if found, err := filepath.Glob(pattern); err == nil && !yield(found) {
				return
			}
		}
		yield([]string{filepath.Join(dir, "pg-dist", "bin")}) // the binaries that .ci/bootstrap fetched
	}
}

// examineFolder returns the installation in dir, and whether dir holds a PostgreSQL server and
// its tools. If dir holds symbolic links, it returns the folder to which they lead, because
// PostgreSQL finds its own files relative to the real binary.
func examineFolder(ctx context.Context, dir string) (installation, bool) {
	real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
	if err != nil {
		return installation{}, false
	}
	i := installation{dir: filepath.Dir(real)}
	for _, program := range programs {
		if st, err := os.Stat(i.path(program)); err != nil || st.Mode()&0o111 == 0 {
			return installation{}, false
		}
	}
	out, err := exec.CommandContext(ctx, i.path("postgres"), "--version").Output() // postgres (PostgreSQL) 15.19 (Debian …)
	if words := strings.Fields(string(out)); err == nil && len(words) > 2 {
		i.version = words[2]
		i.major, err = majorOf(i.version)
		return i, err == nil
	}
	return installation{}, false
}

// majorOf returns the major version of a version such as "15", "15.19" or "18beta1".
func majorOf(version string) (int, error) {
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(version)
	}
	return strconv.Atoi(version[:end])
}

// dataVersion returns the major version of the cluster in data, 0 when there is none yet.
func dataVersion(data string) (int, error) {
	path := filepath.Join(data, "PG_VERSION")
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, daemon.Unusable(data, err)
	}
	major, err := majorOf(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fault.Wrap(fault.Config, "the database is damaged", fmt.Errorf("read %s: %w", path, err)).
			WithHint("restore " + data + " from a backup")
	}
	return major, nil
}
