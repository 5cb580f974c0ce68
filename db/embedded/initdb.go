package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lightweb/lightweb/engine/daemon"
	"github.com/lightweb/lightweb/engine/fault"
)

// reserved is the number of connections that PostgreSQL reserves for a superuser, who may need
// them to repair the cluster.
const reserved = 3

// initdbSpace is a number of free bytes on the disk that is always enough for a new cluster.
const initdbSpace = 64 << 20

// initCluster makes the cluster under a temporary name and renames it at the end, so that an
// unfinished cluster is never used. The temporary name is a new one each time, since an initdb
// whose parent was killed may still be writing under an earlier name. The caller holds
// start.lock.
func (c *Cluster) initCluster(ctx context.Context) error {
	if err := c.needBinaries(ctx); err != nil {
		return err
	}
	began := time.Now()
	tmp, err := os.MkdirTemp(c.dir, "pg.new-")
	if err != nil {
		return daemon.Unusable(c.dir, err)
	}
	// RemoveAll has no effect once tmp is renamed. If it fails, the next Open removes tmp.
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := c.as.Own(tmp); err != nil {
		return err
	}
	_, err = c.as.Run(ctx, tmp, c.bin.path("initdb"), "-D", ".", "-U", superuser, "-A", "peer", "-E", "UTF8", "--locale=C",
		"--data-checksums", "--wal-segsize=4", "--no-instructions")
	if err != nil {
		return fmt.Errorf("make the private cluster: %w", err)
	}
	if err := c.adaptFiles(tmp); err != nil {
		return err
	}
	// os.Rename does not replace a directory, so an empty directory that an operator has made is
	// removed first.
	if err := os.Remove(c.data); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.Wrap(fault.Config, "the place of the database is taken by something else", err).
			WithHint("move " + c.data + " away")
	}
	if err := os.Rename(tmp, c.data); err != nil {
		return daemon.Unusable(c.data, err)
	}
	if err := syncDir(c.dir); err != nil {
		return err
	}
	c.log.InfoContext(ctx, "private PostgreSQL initialised", "version", c.bin.version, "took", time.Since(began))
	return nil
}

// adaptFiles changes files that initdb wrote to dir. Afterwards the files include our settings,
// and say which users may connect.
func (c *Cluster) adaptFiles(dir string) error {
	conf, err := os.ReadFile(filepath.Join(dir, "postgresql.conf"))
	if err != nil {
		return fmt.Errorf("read the new cluster's configuration: %w", err)
	}
	conf = append(conf, "\n# Settings of lightweb, rewritten at each start. What follows this line overrides them.\ninclude = 'lightweb.conf'\n"...)
	if err := c.putFile(dir, "postgresql.conf", string(conf)); err != nil {
		return err
	}
	return c.putFile(dir, "pg_hba.conf", "local all all peer map=lightweb\n")
}

// writeSettings writes the settings of the server. Some of them depend on the place of the
// cluster and on the user who runs it, and both may have changed since the last start. It writes
// them to files, because pg_ctl passes its command line through a shell.
func (c *Cluster) writeSettings(ctx context.Context) error {
	conf := `# Written by lightweb at each start. Settings of your own belong at the end of postgresql.conf.
listen_addresses = ''
unix_socket_directories = '"` + strings.ReplaceAll(c.socket, "'", "''") + `"'
port = ` + port + `
max_connections = ` + strconv.Itoa(max(300, c.connections+reserved)) + `
shared_buffers = ` + strconv.FormatInt(c.buffers>>20, 10) + `MB
synchronous_commit = on
max_wal_size = 4GB
checkpoint_timeout = 15min
wal_compression = ` + c.logCompression(ctx) + `
autovacuum_naptime = 300
log_min_messages = warning
`
	if runtime.GOOS == "linux" {
		// With this setting PostgreSQL makes one system call after a crash. Otherwise it would
		// open some 300 files for every user.
		conf += "recovery_init_sync_method = syncfs\n"
	}
	if err := c.putFile(c.data, "lightweb.conf", conf); err != nil {
		return err
	}
	names := []string{c.as.Name}
	for _, uid := range []int{os.Geteuid(), 0} {
		if name, err := daemon.NameOf(ctx, uid); err == nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var ident strings.Builder
	for _, name := range names {
		fmt.Fprintf(&ident, "lightweb \"%s\" %s\n", name, superuser)
	}
	return c.putFile(c.data, "pg_ident.conf", ident.String())
}

// putFile writes a file for PostgreSQL. It writes all of the file or nothing. The file belongs to
// the user PostgreSQL runs as.
func (c *Cluster) putFile(dir, name, content string) error {
	f, err := os.CreateTemp(dir, name+".")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // without effect once it is renamed
	_, err = f.WriteString(content)
	if err == nil {
		err = c.as.Own(f.Name())
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// clearLeftovers removes unfinished clusters of killed processes. The caller holds start.lock, so
// no other process makes a cluster now. An initdb that has outlived its parent may still be
// writing; then the next Open removes what is left.
func (c *Cluster) clearLeftovers(ctx context.Context) {
	entries, err := os.ReadDir(c.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "pg.new-") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.dir, e.Name())))
		}
	}
	if err != nil {
		c.log.WarnContext(ctx, "half-made cluster not removed", "err", err)
	}
}

// explainFailure adds to err that the disk is full, if that is the reason. PostgreSQL's programs
// report a full disk only as text. So if the reason of err is unknown, explainFailure checks
// whether less than initdbSpace is left on the disk.
func (c *Cluster) explainFailure(err error) error {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
	var st syscall.Statfs_t
	unknown := err != nil && fault.Of(err) == nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	if !full && unknown && syscall.Statfs(c.dir, &st) == nil {
		full = float64(st.Bavail)*float64(st.Bsize) < initdbSpace
	}
	if !full || fault.KindOf(err) == fault.Unavailable {
		return err
	}
	return fault.Wrap(fault.Unavailable, "the disk of the data directory is full", err).
		WithHint(fmt.Sprintf("make room for at least %d MB in %s", initdbSpace>>20, c.dir))
}

// syncDir makes a rename in dir survive a power failure.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
