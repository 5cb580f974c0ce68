package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lightweb/lightweb/engine/archive"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

func user(t *testing.T, name string) vocab.Username {
	t.Helper()
	u, err := vocab.ParseUsername(name)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func manifest(t *testing.T) archive.Manifest {
	return archive.Manifest{Format: 3, Version: "0.1.0", CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), PublicURL: "https://example.org",
		Whole: true, Keys: true, Users: []archive.User{{Name: user(t, "alice"), State: "active", SchemaVersion: 1}}}
}

// entry is one entry of an archive, as Each passes it on.
type entry struct {
	Name    archive.Name
	Content string
}

// written returns an archive with the entries, in the order of the parameter.
func written(t *testing.T, entries []entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, manifest(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name.Kind != archive.Rows && e.Name.Kind != archive.Known {
			if err := w.Add(e.Name, []byte(e.Content)); err != nil {
				t.Fatal(err)
			}
			continue
		}
		rows := w.Rows(e.Name)
		if _, err := io.WriteString(rows, e.Content); err != nil {
			t.Fatal(err)
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// open reads an archive from a file. The file has the bytes of the parameter data.
func open(t *testing.T, data []byte) (*archive.Reader, error) {
	t.Helper()
	return openBy(t, archive.Open, data)
}

// openBy does the same as open, with the function in the parameter open.
func openBy(t *testing.T, open func(context.Context, string) (*archive.Reader, error), data []byte) (*archive.Reader, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := open(t.Context(), path)
	if err == nil {
		t.Cleanup(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return r, err
}

func sample(t *testing.T) []entry {
	alice, large := user(t, "alice"), strings.Repeat("a row\twith \\N and ünïcödé\n", 400_000) // large enough for three parts
	return []entry{
		{archive.Name{Kind: archive.Shape}, `{"of":"the instance"}`},
		{archive.Name{Kind: archive.Rows, Item: "intake"}, "1\tone\n"},
		{archive.Name{Kind: archive.Config}, `{"blocked_domains":[]}`},
		{archive.Name{User: alice, Kind: archive.Shape}, `{}`},
		{archive.Name{User: alice, Kind: archive.Rows, Item: "activities"}, large},
		{archive.Name{User: alice, Kind: archive.Rows, Item: "feed"}, "\x00\xff not text\n"},
		{archive.Name{User: alice, Kind: archive.Key, Item: "rsa.pem"}, "secret"},
		{archive.Name{User: alice, Kind: archive.Media, Item: "0123456789abcdef0123456789abcdef.png"}, "\x89PNG"},
		{archive.Name{User: alice, Kind: archive.Known, Item: "tokens"}, "2\ttwo\n"},
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	all := sample(t)
	r, err := open(t, written(t, all))
	if err != nil {
		t.Fatal(err)
	}
	comparable := cmpopts.EquateComparable(vocab.Username{})
	if d := cmp.Diff(manifest(t), r.Manifest, comparable); d != "" {
		t.Error("manifest: ", d)
	}
	var rows, files, got []entry
	for _, e := range all {
		if e.Name.Kind == archive.Config || e.Name.Kind == archive.Key {
			files = append(files, e)
		} else {
			rows = append(rows, e)
		}
	}
	for range 2 { // Each can be called repeatedly
		got = nil
		err = r.Each(t.Context(), func(n archive.Name, content io.Reader) error {
			b, err := io.ReadAll(content)
			got = append(got, entry{n, string(b)})
			return err
		})
		if d := cmp.Diff(rows, got, comparable); d != "" || err != nil {
			t.Errorf("entries: %v %.2000s", err, d)
		}
	}
	got = nil
	for _, f := range r.Files {
		got = append(got, entry{f.Name, string(f.Data)})
	}
	if d := cmp.Diff(files, got, comparable); d != "" {
		t.Error("files: ", d)
	}
	var names []archive.Name
	if err := r.Each(t.Context(), func(n archive.Name, _ io.Reader) error { names = append(names, n); return nil }); err != nil || len(names) != len(rows) {
		t.Errorf("unread entries: %v, %v, want %d of them skipped", names, err, len(rows))
	}
}

// An archive that is cut off or has a flipped bit is refused before any of its entries is passed
// on.
func TestADamagedArchiveIsRefused(t *testing.T) {
	t.Parallel()
	good := written(t, []entry{
		{archive.Name{Kind: archive.Shape}, `{"tables":[]}`},
		{archive.Name{Kind: archive.Rows, Item: "intake"}, strings.Repeat("1\tone\n", 50)},
	})
	refused := func(what string, data []byte) {
		t.Helper()
		if _, err := open(t, data); fault.KindOf(err) != fault.Invalid && fault.KindOf(err) != fault.Config {
			t.Errorf("%s: %v, want it refused", what, err)
		}
	}
	for n := 0; n < len(good); n += 7 {
		refused(fmt.Sprintf("cut off after %d of %d bytes", n, len(good)), good[:n])
	}
	for n := range good {
		if n >= 3 && n < 10 { // these bytes are gzip's flags, time and operating system; they do not change the content
			continue
		}
		flipped := bytes.Clone(good)
		flipped[n] ^= 0x10
		if bytes.Equal(unpacked(flipped), unpacked(good)) { // the bit is padding of deflate
			continue
		}
		refused(fmt.Sprintf("byte %d of %d flipped", n, len(good)), flipped)
	}
	refused("something behind it", append(bytes.Clone(good), 'x'))
	refused("another archive behind it", append(bytes.Clone(good), good...))
	refused("nothing", nil)
	refused("some text", []byte("this is not an archive"))
}

// unpacked returns the unpacked data of a gzip file, or nil if the file is damaged.
func unpacked(data []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	out, err := io.ReadAll(r)
	if err != nil {
		return nil
	}
	return out
}

// raw is a tar entry. It may be one that lightweb never writes.
type raw struct {
	tar.Header
	content string
}

func file(name, content string) raw { return raw{tar.Header{Name: name}, content} }

// forged returns an archive with the entries, and with correct checksums of them.
func forged(t *testing.T, entries ...raw) []byte {
	t.Helper()
	var out, sums bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	put := func(e raw) {
		e.Size, e.Mode = int64(len(e.content)), 0o600
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(e.content)), e.Name)
	}
	for _, e := range entries {
		put(e)
	}
	put(file("SHA256SUMS", sums.String()))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestNoEntryIsAWayOutOfAFolder(t *testing.T) {
	t.Parallel()
	const good = `{"lightweb_backup":1,"users":[{"user":"alice"}]}`
	link := func(kind byte, name, to string) raw {
		return raw{tar.Header{Name: name, Typeflag: kind, Linkname: to}, ""}
	}
	for _, tt := range []struct {
		name    string
		entries []raw
		want    fault.Kind
	}{
		{"what lightweb writes", []raw{file("manifest.json", good), file("users/alice/keys/rsa.pem", "k")}, 0},
		{"a path upwards", []raw{file("manifest.json", good), file("../../etc/passwd", "x")}, fault.Invalid},
		{"a path upwards in the middle", []raw{file("manifest.json", good), file("users/alice/keys/../../bob/keys/rsa.pem", "x")}, fault.Invalid},
		{"a path upwards in a key's name", []raw{file("manifest.json", good), file("users/alice/keys/...pem", "x")}, fault.Invalid},
		{"a path upwards in a picture's name", []raw{file("manifest.json", good), file("users/alice/media/../0123456789abcdef0123456789abcdef.png", "x")}, fault.Invalid},
		{"a picture of another type", []raw{file("manifest.json", good), file("users/alice/media/0123456789abcdef0123456789abcdef.svg", "x")}, fault.Invalid},
		{"a path from the root", []raw{file("manifest.json", good), file("/etc/passwd", "x")}, fault.Invalid},
		{"a user who is none", []raw{file("manifest.json", good), file("users/admin/config.json", "{}")}, fault.Invalid},
		{"a user with a dot", []raw{file("manifest.json", good), file("users/../config.json", "{}")}, fault.Invalid},
		{"a table that is none", []raw{file("manifest.json", good), file(`users/alice/database/feed"; DROP/000001`, "x")}, fault.Invalid},
		{"a file that nobody knows", []raw{file("manifest.json", good), file("users/alice/.ssh/authorized_keys", "x")}, fault.Invalid},
		{"a symbolic link", []raw{file("manifest.json", good), link(tar.TypeSymlink, "users/alice/config.json", "/etc/passwd")}, fault.Invalid},
		{"a hard link", []raw{file("manifest.json", good), link(tar.TypeLink, "users/alice/config.json", "manifest.json")}, fault.Invalid},
		{"a folder", []raw{file("manifest.json", good), link(tar.TypeDir, "users/alice/keys/", "")}, fault.Invalid},
		{"a device", []raw{file("manifest.json", good), link(tar.TypeChar, "users/alice/config.json", "")}, fault.Invalid},
		{"rows that begin in the middle", []raw{file("manifest.json", good), file("users/alice/database/feed/000002", "x")}, fault.Invalid},
		{"rows of which some are missing", []raw{file("manifest.json", good), file("users/alice/database/feed/000001", "x"), file("users/alice/database/feed/000003", "x")}, fault.Invalid},
		{"a configuration twice", []raw{file("manifest.json", good), file("users/alice/config.json", "{}"), file("users/alice/config.json", "{}")}, fault.Invalid},
		{"a key twice, with others between", []raw{file("manifest.json", good), file("users/alice/keys/rsa.pem", "k"), file("users/alice/config.json", "{}"), file("users/alice/keys/rsa.pem", "l")}, fault.Invalid},
		{"a shape twice", []raw{file("manifest.json", good), file("users/alice/database.json", "{}"), file("users/alice/database.json", "{}")}, fault.Invalid},
		{"a table twice", []raw{file("manifest.json", good), file("users/alice/database/feed/000001", "x"), file("users/alice/database/feed/000001", "x")}, fault.Invalid},
		{"a table twice, with others between", []raw{file("manifest.json", good), file("users/alice/database/feed/000001", "x"), file("users/alice/database/blocks/000001", "x"), file("users/alice/database/feed/000001", "x")}, fault.Invalid},
		{"a part under another number", []raw{file("manifest.json", good), file("users/alice/database/feed/000001", "x"), file("users/alice/database/feed/0000001", "x")}, fault.Invalid},
		{"a manifest twice", []raw{file("manifest.json", good), file("manifest.json", good)}, fault.Invalid},
		{"no manifest", []raw{file("users/alice/config.json", "{}")}, fault.Invalid},
		{"another tar", []raw{file("README", "hello")}, fault.Invalid},
		{"another manifest", []raw{file("manifest.json", `{"name":"a browser extension"}`)}, fault.Invalid},
		{"a user in the manifest who is none", []raw{file("manifest.json", `{"lightweb_backup":1,"users":[{"user":"../x"}]}`)}, fault.Invalid},
		{"a newer format", []raw{file("manifest.json", `{"lightweb_backup":4,"lightweb":"9.0.0"}`), file("whatever", "")}, fault.Config},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := open(t, forged(t, tt.entries...)); fault.KindOf(err) != tt.want {
				t.Errorf("Open: %v, want kind %d", err, tt.want)
			}
		})
	}
}

func TestWhatIsNoFileIsNotRead(t *testing.T) {
	t.Parallel()
	if _, err := archive.Open(t.Context(), t.TempDir()); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a folder: %v, want Invalid", err)
	}
	if _, err := archive.Open(t.Context(), filepath.Join(t.TempDir(), "none")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("nothing: %v, want NotFound", err)
	}
}

// punched renames the records GNU-sparse to GNU.sparse, which describe holes in a file. The
// package tar refuses to write records with the right name.
func punched(t *testing.T, data []byte) []byte {
	t.Helper()
	gz, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := io.ReadAll(gz)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err = w.Write(bytes.ReplaceAll(unpacked, []byte("GNU-sparse."), []byte("GNU.sparse.")))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A backup is trusted to be the operator's own, so it may unpack to any size.
func TestABackupIsReadWhateverItUnpacksTo(t *testing.T) {
	t.Parallel()
	for name, manifest := range map[string]string{
		"of the instance": `{"lightweb_backup":3,"whole":true,"users":[{"user":"alice"}]}`,
		"of a user":       `{"lightweb_backup":3,"users":[{"user":"alice"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readZeros(t, manifest)
		})
	}
}

// readZeros reads a backup whose rows are zeros. Zeros pack to little.
func readZeros(t *testing.T, manifest string) {
	t.Helper()
	var all []raw
	zeros := strings.Repeat("\x00", 16<<20)
	for n := range 8 {
		all = append(all, file(fmt.Sprintf("users/alice/database/feed/%06d", n+1), zeros))
	}
	r, err := open(t, forged(t, append([]raw{file("manifest.json", manifest)}, all...)...))
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	if err := r.Each(t.Context(), func(_ archive.Name, content io.Reader) error {
		read, err := io.Copy(io.Discard, content)
		n += read
		return err
	}); err != nil || n != 128<<20 {
		t.Errorf("%d bytes were read, %v; want all", n, err)
	}
}

// CLI-11: anybody may have made an archive of one user. To read it costs no more than to read an
// archive that lightweb writes.
func TestAnArchiveFromAnybodyIsNoBomb(t *testing.T) {
	t.Parallel()
	const ofUser = `{"lightweb_backup":3,"users":[{"user":"alice"}]}`
	zeros := strings.Repeat("\x00", 16<<20)
	var rows, files, records []raw
	for n := range 160 {
		empty := file(fmt.Sprintf("users/alice/database/feed/%06d", n+1), "")
		empty.PAXRecords = map[string]string{"comment": zeros[:1<<20-100]}
		records = append(records, empty)
	}
	holes := file("outbox.json", "0\n"+strings.Repeat("\x00", 510))
	holes.PAXRecords = map[string]string{"GNU-sparse.major": "1", "GNU-sparse.minor": "0", "GNU-sparse.realsize": "10737418240", "GNU-sparse.name": "outbox.json"}
	for n := range 8 {
		rows = append(rows, file(fmt.Sprintf("users/alice/database/feed/%06d", n+1), zeros))
		files = append(files, file(fmt.Sprintf("users/alice/keys/k%d.pem", n), zeros[:10<<20]))
	}
	for name, entries := range map[string][]raw{
		"rows of nothing":      rows,
		"a document":           {file("outbox.json", strings.Repeat(zeros, 7))},
		"more than is kept":    files,
		"records of the tar":   records,
		"holes":                {holes},
		"too large an entry":   {file("users/alice/database/feed/000001", zeros+"x")},
		"a document by a path": {file("../outbox.json", "{}")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := openBy(t, archive.OpenBounded, punched(t, forged(t, append([]raw{file("manifest.json", ofUser)}, entries...)...))); fault.KindOf(err) != fault.Invalid || name == "holes" && !strings.Contains(err.Error(), "no entry") {
				t.Errorf("Open: %v, want Invalid", err)
			}
		})
	}
}
