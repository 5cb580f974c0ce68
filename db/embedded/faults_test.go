package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestAPlaceThatWillNotDoIsExplained(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		root   bool // only root can prepare this case
		made   bool // the test begins with a cluster in the directory
		spoil  func(t *testing.T, dir string)
		kind   fault.Kind
		public string
		hint   string
	}{
		{"a parent closed to PostgreSQL's user", true, false, func(t *testing.T, dir string) {
			must(t, os.Chmod(filepath.Dir(dir), 0o700))
		}, fault.Config, "the user PostgreSQL runs as cannot enter the data directory", "'chmod o+x "},
		{"a file", false, false, func(t *testing.T, dir string) {
			must(t, os.WriteFile(dir, nil, 0o600))
		}, fault.Config, "the data directory cannot be used", "choose another data directory"},
		{"a disk that is read-only", true, false, func(t *testing.T, dir string) {
			mount(t, dir, "ro")
		}, fault.Config, "the data directory cannot be used", "choose another data directory"},
		{"an owner without a name", true, false, func(t *testing.T, dir string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Chown(dir, 54321, 54321))
		}, fault.Config, "user 54321 has no name on this system, and PostgreSQL needs one", "nss_wrapper"},
		{"a cluster that belongs to root", true, true, func(t *testing.T, dir string) {
			must(t, os.Chown(filepath.Join(dir, "pg", "PG_VERSION"), 0, 0))
		}, fault.Config, "the data of a private server belongs to root, and none runs as root", "chown -R"},
		{"a cluster of another major version", false, true, func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "pg", "PG_VERSION"), []byte("9\n"), 0o600))
		}, fault.Config, "the data was made by PostgreSQL 9, and only ", "install postgresql-9"},
		{"a cluster whose version is lost", false, true, func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "pg", "PG_VERSION"), nil, 0o600))
		}, fault.Config, "the database is damaged", "from a backup"},
		{"something else in the cluster's place", false, false, func(t *testing.T, dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, "pg", "holiday"), 0o755))
			must(t, os.Chmod(dir, 0o755))
		}, fault.Config, "the place of the database is taken by something else", "away"},
		{"settings that PostgreSQL does not take", false, true, func(t *testing.T, dir string) {
			f, err := os.OpenFile(filepath.Join(dir, "pg", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString("shared_buffers = all\n")
			must(t, err)
			must(t, f.Close())
		}, fault.Unavailable, "the private PostgreSQL server does not start", "server.log"},
		{"a disk that is full", true, false, func(t *testing.T, dir string) {
			mount(t, dir, "size=12m")
		}, fault.Unavailable, "the disk of the data directory is full", "make room"},
		{"a disk that has no room for another file", true, false, func(t *testing.T, dir string) {
			mount(t, dir, "nr_inodes=1")
		}, fault.Unavailable, "the disk of the data directory is full", "make room"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.root && os.Geteuid() != 0 {
				t.Skip("needs root to set up")
			}
			dir := ""
			if tt.made {
				dir = madeDir(t, "data")
			} else {
				dir = testDir(t, "data")
			}
			tt.spoil(t, dir)
			c, err := Open(t.Context(), Config{Dir: dir})
			if err == nil {
				mustClose(t, c)
			}
			f := fault.Of(err)
			if f == nil || f.Kind != tt.kind || !strings.HasPrefix(f.Public, tt.public) || !strings.Contains(f.Hint, tt.hint) {
				t.Errorf("Open = %v\nhint %q\nwant kind %d, %q, hint %q", err, fault.Hint(err), tt.kind, tt.public, tt.hint)
			}
		})
	}
}

// The disk of a used cluster is full. The engine can then neither write the settings nor remove
// the files of a dead server. Open says so, and succeeds once there is room again.
func TestAClusterOnAFullDiskIsExplained(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a disk")
	}
	for _, tt := range []struct {
		name string
		died bool // whether the server died
	}{{"after it was stopped", false}, {"after it died", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := testDir(t, "data")
			mount(t, dir, "size=256m")
			c := mustOpen(t, dir)
			mustClose(t, c)
			if tt.died {
				must(t, c.putFile(c.data, "postmaster.pid", "1\n")) // as if the id of the dead server belonged to another process now
			}
			ballast, err := os.Create(filepath.Join(dir, "ballast"))
			must(t, err)
			if _, err := io.Copy(ballast, zeros{}); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("fill the disk: %v", err)
			}
			must(t, ballast.Close())
			again, err := Open(t.Context(), Config{Dir: dir})
			if err == nil {
				mustClose(t, again)
			}
			if fault.KindOf(err) != fault.Unavailable || fault.Public(err) != "the disk of the data directory is full" || !strings.Contains(fault.Hint(err), "make room") {
				t.Errorf("Open = %v, hint %q, want that the disk is full", err, fault.Hint(err))
			}
			must(t, os.Remove(ballast.Name()))
			mustAnswer(t, mustOpen(t, dir))
		})
	}
}

// zeros is a reader that returns zeros without end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestAStalePIDFileIsNoObstacle(t *testing.T) {
	t.Parallel()
	const rest = "/elsewhere/pg\n1700000000\n5432\n/elsewhere/run\n\n  1234567         0\nready   \n"
	tests := []struct {
		name    string
		content func(stranger int) string
	}{
		{"whose number has passed to a living stranger", func(stranger int) string { return fmt.Sprintf("%d\n%s", stranger, rest) }},
		{"whose process is gone", func(int) string { return nobodysPID + "\n" + rest }},
		{"that a power cut has emptied", func(int) string { return "" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := madeDir(t, "data")
			c := &Cluster{}
			must(t, c.choosePlace(t.Context(), dir))
			stranger := exec.Command("sleep", "60")
			stranger.SysProcAttr = c.as.Attributes() // PostgreSQL looks only at processes of its own user
			must(t, stranger.Start())
			must(t, c.putFile(c.data, "postmaster.pid", tt.content(stranger.Process.Pid)))
			must(t, c.putFile(c.socket, ".s.PGSQL.5432.lock", tt.content(stranger.Process.Pid)))
			must(t, c.putFile(c.socket, ".s.PGSQL.5432", ""))
			opened := mustOpen(t, dir)
			mustAnswer(t, opened)
			mustClose(t, opened)
			if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("the stranger was harmed: %v", err)
			}
			must(t, stranger.Process.Kill())
			_ = stranger.Wait() // returns an error, because the process was killed
		})
	}
}

func TestCloseSignalsNoStranger(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, "data")
	c := mustOpen(t, dir)
	must(t, syscall.Kill(serverOf(t, dir), syscall.SIGKILL))
	stranger := exec.Command("sleep", "60")
	stranger.SysProcAttr = c.as.Attributes()
	must(t, stranger.Start())
	must(t, c.putFile(c.data, "postmaster.pid", fmt.Sprintf("%d\n", stranger.Process.Pid)))
	mustClose(t, c)
	must(t, stranger.Process.Kill())
	if err := stranger.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the stranger ended with %v, want it to live until killed", err)
	}
}

func TestBinariesAreChosenByVersion(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	folder := func(version string) string {
		dir := filepath.Join(root, version)
		must(t, os.MkdirAll(dir, 0o755))
		for _, p := range programs {
			must(t, os.WriteFile(filepath.Join(dir, p), []byte("#!/bin/sh\necho 'postgres (PostgreSQL) "+version+" (Test)'\n"), 0o755))
		}
		return dir
	}
	old, v15, v18, beta := folder("9.6.24"), folder("15.19"), folder("18.4"), folder("19beta1")
	links := filepath.Join(root, "links")
	must(t, os.Mkdir(links, 0o755))
	must(t, os.Symlink(filepath.Join(v15, "postgres"), filepath.Join(links, "postgres")))
	client := filepath.Join(root, "client") // a folder as Debian's package postgresql-client has it
	must(t, os.Mkdir(client, 0o755))

	tests := []struct {
		name   string
		groups [][]string
		want   int
		dir    string
		kind   fault.Kind
		hint   string
	}{
		{"a new cluster takes the first place that is new enough", [][]string{{client}, {old}, {v15}, {v18}}, 0, v15, 0, ""},
		{"and the newest of one packager", [][]string{{v15, v18, old}}, 0, v18, 0, ""},
		{"a cluster prefers its own version wherever it is", [][]string{{v18}, {old, v15}}, 15, v15, 0, ""},
		{"links lead to the real binaries", [][]string{{links}}, 0, v15, 0, ""},
		{"a beta has a version too", [][]string{{beta}}, 19, beta, 0, ""},
		{"none at all", [][]string{{client}}, 0, "", fault.Unavailable, "'apt-get install postgresql', or set LIGHTWEB_DATABASE_URL"},
		{"none for a cluster", nil, 15, "", fault.Unavailable, "'apt-get install postgresql', or set LIGHTWEB_DATABASE_URL"},
		{"only too old ones", [][]string{{old}}, 0, "", fault.Unavailable, "install PostgreSQL 15 or newer, or set LIGHTWEB_DATABASE_URL"},
		{"only another version than the cluster's", [][]string{{v18}}, 15, "", fault.Config, "install postgresql-15, or name the folder of its binaries in LIGHTWEB_PG_BIN"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i, err := findBin(t.Context(), slices.Values(tt.groups), tt.want)
			if i.dir != tt.dir || fault.KindOf(err) != tt.kind || fault.Hint(err) != tt.hint {
				t.Errorf("findBin = %q, %v, hint %q; want %q, kind %d, hint %q", i.dir, err, fault.Hint(err), tt.dir, tt.kind, tt.hint)
			}
		})
	}
}

func TestTheNamedFolderIsTheOnlyOne(t *testing.T) {
	empty := t.TempDir()
	t.Setenv("LIGHTWEB_PG_BIN", empty)
	_, err := findBin(t.Context(), listCandidates(t.Context(), empty), 0)
	if fault.KindOf(err) != fault.Config || !strings.Contains(fault.Hint(err), empty) {
		t.Errorf("findBin = %v, hint %q; want a Config fault with a hint at %s", err, fault.Hint(err), empty)
	}
}

func TestTheServersLogIsRotatedAtStart(t *testing.T) {
	t.Parallel()
	dir := madeDir(t, "data")
	log := filepath.Join(dir, "pg", logName)
	must(t, os.Truncate(log, logLimit+1))
	mustAnswer(t, mustOpen(t, dir))
	for path, want := range map[string]func(int64) bool{
		log:        func(n int64) bool { return n < logLimit },
		log + ".1": func(n int64) bool { return n == logLimit+1 },
	} {
		if st, err := os.Stat(path); err != nil || !want(st.Size()) {
			t.Errorf("%s: %v, %v", path, st, err)
		}
	}
}

// mount mounts a disk of its own at dir.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	must(t, os.Mkdir(dir, 0o711))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "mode=711,"+options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a disk: %v: %s", err, out)
	}
	t.Cleanup(func() { must(t, exec.Command("umount", "--lazy", dir).Run()) }) // lazily, because a process of the server may still be about to end
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
