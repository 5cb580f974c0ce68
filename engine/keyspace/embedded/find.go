package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
)

// oldest is the oldest major version that has all commands that the engine uses.
const oldest = 7

// binVariable is the environment variable with the path of the server program. If it is set, no
// program is searched for; the value "none" selects the stand-in.
const binVariable = "LIGHTWEB_REDIS_BIN"

// installation is a server program on this machine.
type installation struct {
	path string // empty if there is none
	name string // "Redis 7.0.15" or "Valkey 8.1.1"
}

// places lists the folders where packages install Redis. They are searched after the PATH.
var places = []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin", "/nix/var/nix/profiles/default/bin"}

// findProgram returns the first server program that is new enough, or a zero installation if
// there is none.
func findProgram(ctx context.Context) (installation, error) {
	switch set := os.Getenv(binVariable); set {
	case "":
	case "none":
		return installation{}, nil
	default:
		if i, ok := examineProgram(ctx, set); ok {
			return i, nil
		}
		return installation{}, fault.New(fault.Config, fmt.Sprintf("%s names no Redis or Valkey server of version %d or newer", binVariable, oldest)).
			WithHint("name the program itself, such as /usr/bin/redis-server, or none to keep Redis inside the process")
	}
	for _, program := range []string{"redis-server", "valkey-server"} {
		paths := []string{}
		if p, err := exec.LookPath(program); err == nil {
			paths = append(paths, p)
		}
		for _, dir := range places {
			paths = append(paths, filepath.Join(dir, program))
		}
		for _, p := range paths {
			if i, ok := examineProgram(ctx, p); ok {
				return i, nil
			}
		}
	}
	return installation{}, ctx.Err()
}

// examineProgram reports whether path is a server program that is new enough, and returns its
// name and version.
func examineProgram(ctx context.Context, path string) (installation, bool) {
	// On Debian path is a link to a program that acts as a server only under that name, so the
	// link is not resolved. The output is "Redis server v=7.0.15 sha=…" or "Valkey server
	// v=8.1.1 sha=…".
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	words := strings.Fields(string(out))
	if err != nil || len(words) < 3 {
		return installation{}, false
	}
	version := strings.TrimPrefix(words[2], "v=")
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return installation{path: path, name: words[0] + " " + version}, err == nil && n >= oldest
}
