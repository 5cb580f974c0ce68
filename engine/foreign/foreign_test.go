package foreign_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/foreign"
)

func written(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// packed writes entries with the same content into two archives: a zip file and a gzipped tar
// file. It returns the paths of both.
func packed(t *testing.T, content string, names ...string) []string {
	t.Helper()
	var zipped, tarred bytes.Buffer
	z := zip.NewWriter(&zipped)
	gz := gzip.NewWriter(&tarred)
	w := tar.NewWriter(gz)
	for _, name := range names {
		entry, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		for _, to := range []io.Writer{entry, w} {
			if _, err := io.WriteString(to, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []io.Closer{z, w, gz} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return []string{written(t, zipped.Bytes()), written(t, tarred.Bytes())}
}

func TestAListIsKnownByItsContent(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]foreign.List{
		"Account address,Show boosts,Notify on new posts,Languages\na@b.example,true,false,\n@a@B.example,true,false,\n": {Kind: foreign.Following, Entries: []string{"a@b.example"}},
		"\ufeffaccount address,hide notifications\r\na@b.example,true\r\n":                                               {Kind: foreign.Mutes, Entries: []string{"a@b.example"}},
		"a@b.example\nc@d.example:8443\n": {Kind: foreign.Accounts, Entries: []string{"a@b.example", "c@d.example:8443"}},
		"bad.example\nWorse.example\n":    {Kind: foreign.Domains, Entries: []string{"bad.example", "worse.example"}},
	} {
		got, err := foreign.ReadList(written(t, []byte(content)))
		if err != nil || got.Kind != want.Kind || !slices.Equal(got.Entries, want.Entries) {
			t.Errorf("%q is read as %v, %v, want %v", content, got, err, want)
		}
	}
}

func TestAListThatCannotBeTakenIsRefused(t *testing.T) {
	t.Parallel()
	for content, why := range map[string]string{
		"": "empty", "a@b.example\nhttps://b.example/@c\n": "line 2", "a@b.example\n=cmd()@c d\n": "line 2", "bad.example\ncom\n": "line 2", "a@b.example\n\"": "malformed",
		"a@b.example/../x\n": "line 1", "\x00\x01": "neither", "\xff\xfe": "neither", strings.Repeat("a@b.example\n", foreign.MaxEntries+2): "more than",
	} {
		if _, err := foreign.ReadList(written(t, []byte(content))); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.40q: %v, want %q", content, err, why)
		}
	}
}

// CLI-11: the engine does not write to any path that an archive names. It refuses an archive with
// a path that leads out of the archive.
func TestAnArchiveIsNoWayIntoTheFileSystem(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../x.json", "a/../../x.json", "/x.json", `a\..\x.json`, "a//x.json", "./x.json", ".."} {
		for _, path := range packed(t, "{}", name) {
			err := foreign.ReadArchive(t.Context(), path, func(name string, _ io.Reader) error { t.Errorf("%q was read", name); return nil })
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "path") {
				t.Errorf("%q: %v, want it refused for its path", name, err)
			}
		}
	}
}

// FRS-07: an archive may have two entries with the same name. One reader could check the first,
// and another could use the second. So the engine refuses the archive.
func TestAnArchiveWithAnEntryTwiceIsRefused(t *testing.T) {
	t.Parallel()
	for _, path := range packed(t, "{}", "following.json", "actor.json", "following.json") {
		err := foreign.ReadArchive(t.Context(), path, func(string, io.Reader) error { return nil })
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "twice") {
			t.Errorf("%v, want it refused for the entry that is in it twice", err)
		}
	}
}

// CLI-11: if an archive unpacks to more than 300 times its size, the engine refuses it before it
// has read all of it.
func TestAnArchiveIsNoBomb(t *testing.T) {
	t.Parallel()
	for _, path := range packed(t, strings.Repeat(" ", 160<<20), "outbox.json") {
		err := foreign.ReadArchive(t.Context(), path, func(string, io.Reader) error { return nil })
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "300 times") {
			t.Errorf("%v, want it refused for what it unpacks to", err)
		}
	}
}

// endless returns the path of a gzipped tar file that has n MiB of PAX records and no entry.
func endless(t *testing.T, n int) string {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	for range n {
		comment := strings.Repeat("x", 1<<20-100)
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"comment": comment}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return written(t, out.Bytes())
}

// CLI-11: the records of a tar file count towards the limit, too. The engine stops reading them
// when the context ends.
func TestATarOfRecordsIsNoBomb(t *testing.T) {
	t.Parallel()
	path := endless(t, 160)
	err := foreign.ReadArchive(t.Context(), path, func(string, io.Reader) error { return nil })
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "300 times") {
		t.Errorf("%v, want it refused for what it unpacks to", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := foreign.ReadArchive(stopped, path, func(string, io.Reader) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that it was stopped", err)
	}
	if _, err := foreign.Detect(stopped, path); !errors.Is(err, context.Canceled) {
		t.Errorf("Detect: %v, want that it was stopped", err)
	}
}

// CLI-11: the engine reads a zip file's list of entries into memory. So it refuses a zip file with
// too large a list.
func TestAZipThatListsTooMuchIsRefused(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for range 1100 {
		if _, err := w.CreateRaw(&zip.FileHeader{Name: "x", Comment: strings.Repeat("x", 65_000)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	err := foreign.ReadArchive(t.Context(), written(t, out.Bytes()), func(string, io.Reader) error { return nil })
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "listing") {
		t.Errorf("%v, want it refused for its listing", err)
	}
}

func TestACollectionIsReadItemByItem(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]int{
		`{"a":{"orderedItems":[1]},"orderedItems":[{"b":[1,2]},"c"],"z":3}`: 2, `{}`: 0, `{"orderedItems":[]}`: 0, `{"items":["a"]}`: 1,
		`[]`: -1, `{"orderedItems":[`: -1, `{"orderedItems":[1,]}`: -1, `{"orderedItems":{}}`: -1, `{"orderedItems":["` + strings.Repeat("x", 65<<20) + `"]}`: -1,
	} {
		n := 0
		err := foreign.ReadItems(strings.NewReader(content), func(json.RawMessage) error { n++; return nil })
		if want < 0 && fault.KindOf(err) != fault.Invalid || want >= 0 && (err != nil || n != want) {
			t.Errorf("%.60q has %d items, %v; want %d", content, n, err, want)
		}
	}
}

func TestAPostIsItsAccounts(t *testing.T) {
	t.Parallel()
	const me = "https://old.example/users/mia"
	for item, want := range map[string]string{
		`"https://old.example/1"`: "none",
		`{"id":"https://old.example/1","type":"Announce","object":"https://else.example/1"}`:                                                                             "none",
		`{"id":"https://old.example/1","type":"Create","object":{"id":"https://old.example/o","type":"Tombstone"}}`:                                                      "none",
		`{"id":"https://old.example/1","type":"Create","object":{"id":"https://old.example/o","type":"Collection","name":"family","attributedTo":"` + me + `"}}`:         "none",
		`{"id":"https://old.example/1","type":"Create","object":{"id":"https://old.example/o","type":"Note","attributedTo":"` + me + `","bto":["https://x.example/1"]}}`: "a post",
		`{"id":"https://old.example/1","type":"Create","object":{"id":"https://else.example/o","type":"Note","attributedTo":"` + me + `"}}`:                              "refused",
		`{"id":"https://old.example/1","type":"Create","object":{"id":"https://old.example/o","type":"Note","attributedTo":"https://old.example/users/x"}}`:              "refused",
		`{"type":"Create","object":{"id":"https://old.example/o","type":"Note","attributedTo":"` + me + `"}}`:                                                            "refused",
	} {
		p, err := foreign.ReadPost(json.RawMessage(item), me)
		got := "a post"
		switch {
		case err != nil:
			got = "refused"
		case p == nil:
			got = "none"
		case bytes.Contains(p.ObjectDoc, []byte("bto")):
			got = "a post that names hidden recipients"
		}
		if got != want {
			t.Errorf("%s is %s (%v), want %s", item, got, err, want)
		}
	}
}
