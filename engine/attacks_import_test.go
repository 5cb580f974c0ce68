package engine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"strings"
	"testing"
)

// hostileImports returns files that attack the user who imports them. The keys are the kinds of
// attack.
func hostileImports(t *testing.T) map[string]string {
	t.Helper()
	with := func(name, content string) map[string]string {
		files := maps.Clone(mastodonFiles(t))
		files[name] = content
		return files
	}
	forged := strings.Replace(mastodonFiles(t)["outbox.json"], "https://old.example/users/mia/statuses/1\"", "https://bank.example/1\"", 1)
	blanks := with("outbox.json", `{"orderedItems":[`+strings.Repeat(" ", 160<<20)+`]}`)
	return map[string]string{
		"a zip that is a bomb":             zipped(t, blanks),
		"a tar that is a bomb":             tarred(t, blanks),
		"a path upwards":                   zipped(t, with("../../evil.json", "{}")),
		"a path upwards in a tar":          tarred(t, with("media/../../evil.json", "{}")),
		"a path from the root":             tarred(t, with("/etc/cron.d/evil", "x")),
		"a path of another system":         zipped(t, with(`..\evil.json`, "{}")),
		"a symbolic link":                  linked(t, tar.TypeSymlink),
		"a hard link":                      linked(t, tar.TypeLink),
		"a device":                         linked(t, tar.TypeChar),
		"a post of another server":         zipped(t, with("outbox.json", forged)),
		"a post that is no JSON":           zipped(t, with("outbox.json", `{"orderedItems":[{"type":"Create","object":}]}`)),
		"a list that does not end":         zipped(t, with("outbox.json", `{"orderedItems":[`)),
		"no actor":                         zipped(t, with("actor.json", `{}`)),
		"an archive that is cut off":       written(t, []byte("PK\x03\x04 and nothing more")),
		"a million follows":                written(t, []byte("Account address,Show boosts\n"+strings.Repeat("a@b.example,true\n", 1_000_000))),
		"a million follows, as an archive": zipped(t, with("following.json", `{"orderedItems":["https://b.example/1"`+strings.Repeat(`,"https://b.example/1"`, 1_000_000)+`]}`)),
		"what is no text":                  written(t, []byte("\xff\xfe\x00\x01 and more")),
	}
}

// linked returns an archive in which the outbox is a link or a device file.
func linked(t *testing.T, kind byte) string {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	actor := mastodonFiles(t)["actor.json"]
	err := w.WriteHeader(&tar.Header{Name: "actor.json", Size: int64(len(actor))})
	if err == nil {
		_, err = io.WriteString(w, actor)
	}
	if err == nil {
		err = w.WriteHeader(&tar.Header{Name: "outbox.json", Typeflag: kind, Linkname: "/etc/passwd"})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return written(t, out.Bytes())
}
