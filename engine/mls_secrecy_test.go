package engine_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// nothingIsReadHere checks what operators and other programs of the machine read: the logs, the
// metrics, both Redis servers, and the files beside the tables of PostgreSQL. They contain no
// plaintext, no message and no token, and the metrics contain no URI (row 30
// of docs/conversations.md, Cases and their tests).
func (r *room) nothingIsReadHere(t *testing.T) {
	homes := map[*enginetest.Instance][]*seat{}
	for _, s := range r.seats {
		homes[s.user.Home] = append(homes[s.user.Home], s)
	}
	for home, seats := range homes {
		metrics := home.Metrics(t)
		places := map[string]string{"the log": home.Log(), "the metrics": metrics, "Redis": inRedis(t, home), "the files": inFiles(t, home)}
		secrets := []string{"still here", "PRIVATE KEY"}
		for _, s := range r.seats {
			secrets = append(secrets, "I am "+s.name, "without "+s.name)
		}
		for _, s := range seats {
			if len(s.known) == 0 {
				t.Errorf("%s knows no message", s.name)
			}
			secrets = append(append(secrets, s.user.Token), slices.Collect(maps.Keys(s.known))...)
		}
		if all := places["Redis"]; all != standIn && !strings.Contains(all, "mls.message.received") {
			t.Errorf("no stream of %s tells of a message", home.URL)
		}
		for place, text := range places {
			if text == "" {
				t.Errorf("%s of %s cannot be read", place, home.URL)
			}
			for _, secret := range secrets {
				if form := formOf(text, secret); form != "" {
					t.Errorf("%s of %s: %.60q is there %s", place, home.URL, secret, form)
				}
			}
		}
		if label := labelWithURI.FindString(metrics); label != "" {
			t.Errorf("the metrics of %s have a label %s", home.URL, label)
		}
	}
}

var labelWithURI = regexp.MustCompile(`\w+="[^"]*(://|/users/[^:])[^"]*"`)

// formOf tells in which form a text contains a secret. A secret that is base64 is looked for as
// bytes and in hexadecimal digits, too.
func formOf(text, secret string) string {
	forms := map[string]string{"as it is": secret, "in hex": hex.EncodeToString([]byte(secret))}
	for before := range 3 { // in base64 a text looks different after one, two and three bytes
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("-", before) + secret))
		forms[fmt.Sprintf("in base64 after %d bytes", before)] = encoded[(before*8+5)/6 : (before+len(secret))*8/6]
	}
	if raw, err := base64.StdEncoding.DecodeString(secret); err == nil && len(raw) > 32 {
		forms["as bytes"], forms["as bytes in hex"] = string(raw), hex.EncodeToString(raw)
	}
	for name, form := range forms {
		if strings.Contains(text, form) {
			return name
		}
	}
	return ""
}

// standIn takes the place of Redis where none is installed.
const standIn = "a stand-in"

var unixSocket = regexp.MustCompile(`(?m)^unixsocket "?([^"\n]+)"?$`)

// inRedis returns the keys and values of an instance's Redis servers, those of streams too.
func inRedis(t *testing.T, i *enginetest.Instance) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(i.DataDir, "redis", "*", "*.conf"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		if _, err := os.Stat(filepath.Join(i.DataDir, "redis", "process.json")); err != nil {
			t.Fatalf("there is neither Redis nor its stand-in: %v", err)
		}
		return standIn
	}
	var all strings.Builder
	for _, file := range files {
		conf, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		socket := unixSocket.FindSubmatch(conf)
		if socket == nil {
			t.Fatalf("%s names no socket", file)
		}
		ask := func(words ...string) string {
			t.Helper()
			got, err := redistest.Ask("unix", string(socket[1]), words...)
			if err != nil {
				t.Fatalf("%q: %v", words, err)
			}
			return got
		}
		for _, key := range strings.Fields(ask("KEYS", "*")) {
			kind := strings.TrimSpace(ask("TYPE", key))
			read := map[string][]string{"string": {"GET", key}, "hash": {"HGETALL", key}, "list": {"LRANGE", key, "0", "-1"}, "set": {"SMEMBERS", key},
				"zset": {"ZRANGE", key, "0", "-1"}, "stream": {"XRANGE", key, "-", "+"}}[kind]
			if kind == "none" { // it has expired meanwhile
				continue
			}
			if read == nil {
				t.Fatalf("%s is a %s", key, kind)
			}
			all.WriteString(key + "\n" + ask(read...) + "\n")
		}
	}
	return all.String()
}

// inFiles returns the contents of an instance's files, but for the tables and the journal of
// PostgreSQL, which keep messages for the members, and the keys of users, which sign requests.
func inFiles(t *testing.T, i *enginetest.Instance) string {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(i.DataDir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && os.IsNotExist(err):
			return nil // a file that was there for a moment
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"base", "global", "pg_wal", "keys"}, d.Name()):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		all.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
