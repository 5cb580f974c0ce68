package engine_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

func TestAttacksOnFreshness(t *testing.T) {
	t.Parallel()
	newSiege(t).play(freshnessAttacks)
}

var freshnessAttacks = []attack{frs01, frs02, frs03, frs04, frs05, frs06, frs07}

var frs05 = attack{id: "FRS-05", sends: "a private key in a file that others may read, that is a link, or that belongs to another account",
	happens: "it is refused, what it would sign waits until the key is back, and the log says once which file it is and to `chmod 600` it; other users are served",
	changes: true, asks: 12, play: func(s *siege) {
		path := filepath.Join(s.home.DataDir, "users", "bob", "keys", "rsa.pem")
		ways := []func() error{func() error { return os.Chmod(path, 0o666) }, func() error { return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path)) }}
		mend := []func() error{func() error { return os.Chmod(path, 0o600) }, func() error { return os.Rename(path+".real", path) }}
		if os.Geteuid() == 0 { // only root can change the owner
			ways = append(ways, func() error { return os.Chown(path, 54321, 54321) })
			mend = append(mend, func() error { return os.Chown(path, 0, 0) })
		}
		carols := strings.TrimPrefix(s.carol.Doc.Text("inbox"), s.q.Origin)
		for n, way := range ways {
			waits := fmt.Sprint("owed before way ", n)
			s.q.Handle(carols, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
			s.bob.Do(s, "CreateNote", map[string]any{"content": waits, "visibility": "direct", "to": []any{string(s.carol.ID)}})
			enginetest.Eventually(s, "bob's letter waits for carol's server", func() bool {
				return s.count("lightweb_bob", `SELECT count(*) FROM deliveries WHERE status = 'pending' AND attempts = 1`) == 1
			})
			if err := way(); err != nil {
				s.Fatal(err)
			}
			told := strings.Count(s.home.Log(), "chmod 600")
			enginetest.Eventually(s, "the key is refused", func() bool { return enginetest.Fetch(s, s.bob.ID).Status == 503 })
			for range 50 {
				s.answered(enginetest.Fetch(s, s.bob.ID), 503)
				s.answered(enginetest.Fetch(s, s.alice.ID), 200)
			}
			s.q.Answer(carols, http.StatusAccepted)
			s.retry("bob")
			enginetest.Eventually(s, "bob's letter waits for the key", func() bool {
				return s.count("lightweb_bob", `SELECT count(*) FROM deliveries WHERE status = 'pending' AND last_error LIKE '%the key file rsa.pem%' AND next_at > now() + interval '1 minute'`) == 1
			})
			sent := len(s.q.Posted())
			if got := s.bob.Try(s, "CreateNote", map[string]any{"content": "hello", "visibility": "direct", "to": []any{string(s.carol.ID)}}); got.Status != 503 {
				s.Errorf("way %d: bob's letter was answered %d %s", n, got.Status, got.Body)
			}
			s.alice.Post(s, map[string]any{"content": "hello", "visibility": "direct", "to": []any{string(s.carol.ID)}})
			enginetest.Eventually(s, "alice's letter is sent", func() bool {
				return s.count("lightweb_alice", `SELECT count(*) FROM deliveries WHERE status = 'pending'`) == 0
			})
			if got := len(s.q.Posted()) - sent; got != 1 || s.count("lightweb_bob", `SELECT count(*) FROM deliveries WHERE status = 'pending' AND attempts = 1`) != 1 {
				s.Errorf("way %d: %d letters left, want alice's, while bob's waits", n, got)
			}
			if got := strings.Count(s.home.Log(), "chmod 600") - told; got != 1 {
				s.Errorf("way %d: the log says chmod %d times, want once:\n%s", n, got, s.home.Log())
			}
			for line := range strings.Lines(s.home.Log()) {
				if strings.Contains(line, "chmod 600") && !strings.Contains(line, "the key file rsa.pem ") {
					s.Errorf("way %d: the log does not name the file: %s", n, line)
				}
			}
			if err := mend[n](); err != nil {
				s.Fatal(err)
			}
			enginetest.Eventually(s, "the key is used again", func() bool { return enginetest.Fetch(s, s.bob.ID).Status == 200 })
			sent = len(s.q.Posted())
			s.retry("bob")
			s.settle()
			if got := s.q.Posted()[sent:]; len(got) != 1 || !strings.Contains(string(got[0].Content), waits) {
				s.Errorf("way %d: once the key is back %d letters are sent, want the one that waited", n, len(got))
			}
		}
	}}

// retry makes a user's deliveries due now.
func (s *siege) retry(user string) {
	s.Helper()
	if got := s.home.Run(s, "deliver", "retry", user); got.Code != 0 {
		s.Fatalf("deliver retry ended with %d %s", got.Code, got.Stderr)
	}
}

var frs06 = attack{id: "FRS-06", sends: "NUL, bytes that are no UTF-8 and halves of surrogates in every parameter of every address",
	happens: "400 before anything looks at it, and nothing in the log above level Info (each route and parameter is played by `TestNoAddressTakesWhatIsNoText`)", play: func(s *siege) {
		above := regexp.MustCompile(`"level":"(WARN|ERROR)"`)
		told := len(above.FindAllString(s.home.Log(), -1))
		for _, bad := range []string{"%00", "%ff", "%ed%a0%80", "%c0%af"} {
			for _, path := range []string{"/users/" + bad, "/users/alice/objects/" + bad, "/users/alice/outbox?cursor=" + bad, "/users/alice/followers_synchronization?domain=" + bad,
				"/.well-known/webfinger?resource=" + bad, "/api/feed?feed=" + bad, "/api/feed/" + bad, "/nowhere/" + bad} {
				s.answered(enginetest.Fetch(s, s.home.URL+path), 400)
				if strings.HasPrefix(path, "/api/") {
					s.answered(s.alice.Ask(s, http.MethodGet, path, nil), 400)
				}
			}
			s.answered(s.forge(peertest.Forgery{URL: s.home.URL + "/users/" + bad + "/inbox"}), 400)
			s.answered(s.forge(peertest.Forgery{URL: s.alice.ID + "/inbox?x=" + bad}), 400)
			s.answered(enginetest.Fetch(s, s.alice.ID+"?name=%C3%A9"), 200)
		}
		if got := len(above.FindAllString(s.home.Log(), -1)); got != told {
			s.Errorf("the log has %d more entries above level Info", got-told)
		}
	}}

var frs07 = attack{id: "FRS-07", sends: "an archive that holds one entry twice",
	happens: "it is refused as damaged (exit code 65), by `restore --dry-run` too, and leaves no user and no file; the archive that it was made of is read", play: func(s *siege) {
		folder := enginetest.Dir(s)
		good, forged := filepath.Join(folder, "good.backup"), filepath.Join(folder, "forged.backup")
		if got := s.home.Run(s, "backup", good); got.Code != 0 {
			s.Fatalf("backup: %d %s", got.Code, got.Stderr)
		}
		repeatEntry(s, good, forged, "users/bob/config.json", "users/bob/keys/rsa.pem", "users/bob/database.json")
		got := s.home.Run(s, "restore", "--dry-run", forged)
		if got.Code != 65 || !strings.Contains(got.Stderr, "the archive is damaged") {
			s.Errorf("restore --dry-run ended with %d %s", got.Code, got.Stderr)
		}
		fresh := enginetest.Make(s.T, "LIGHTWEB_PUBLIC_URL="+s.home.URL)
		if got := fresh.Run(s, "restore", forged); got.Code != 65 || !strings.Contains(got.Stderr, "the archive is damaged") {
			s.Errorf("restore to an empty folder ended with %d %s", got.Code, got.Stderr)
		}
		for _, made := range []string{"users", "registry", "instance", "media"} {
			err := filepath.WalkDir(filepath.Join(fresh.DataDir, made), func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					s.Errorf("a refused restore left %s", path)
				}
				return nil
			})
			if err != nil {
				s.Fatal(err)
			}
		}
		if users := fresh.Run(s, "user", "list"); users.Code != 0 || strings.Contains(users.Stdout, "alice") || strings.Contains(users.Stdout, "bob") {
			s.Errorf("after a refused restore user list ends with %d %s", users.Code, users.Stdout)
		}
		if got := s.home.Run(s, "restore", "--dry-run", good); got.Code != 0 {
			s.Errorf("restore --dry-run of the good one ended with %d %s", got.Code, got.Stderr)
		}
	}}

// repeatEntry copies a valid archive to path, and writes the first entry that has one of the names
// twice. The checksums are right.
func repeatEntry(t testing.TB, good, path string, names ...string) {
	t.Helper()
	in, err := os.Open(good)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	packed, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	var out, sums bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	put := func(name string, content []byte) {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
	}
	repeated := false
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if err != nil || h.Name == "SHA256SUMS" {
			break
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		put(h.Name, content)
		if !repeated && slices.Contains(names, h.Name) {
			put(h.Name, content)
			repeated = true
		}
	}
	put("SHA256SUMS", sums.Bytes())
	if err := errors.Join(w.Close(), gz.Close(), os.WriteFile(path, out.Bytes(), 0o600)); err != nil || !repeated {
		t.Fatal("nothing is there to be repeated, or ", err)
	}
}
