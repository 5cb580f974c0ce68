package engine_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// imported is the output of user import --json.
type imported struct {
	Kind, User, From                       string
	Posts, Blocks, Mutes, Follows, Waiting int
	Added                                  int `json:"posts_added"`
	Skipped                                int `json:"posts_skipped"`
	Domains                                int `json:"muted_domains"`
	Attachments                            int `json:"attachments_left"`
	Likes                                  int `json:"likes_left"`
	Bookmarks                              int `json:"bookmarks_left"`
	Restored                               *restored
}

// bring imports a file and returns the report of the command.
func bring(t *testing.T, i *enginetest.Instance, file string, flags ...string) (r imported) {
	t.Helper()
	got := i.Run(t, append([]string{"user", "import", file, "--json"}, flags...)...)
	if got.Code != 0 {
		t.Fatalf("user import %v ended with %d: %s", flags, got.Code, got.Stderr)
	}
	got.Decode(t, &r)
	return r
}

// unpacked returns the files of an archive.
func unpacked(t *testing.T, file string) map[string][]byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if err != nil {
			return files
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// shownTo returns those documents of a user that the engine serves to the same user.
func shownTo(t *testing.T, u *enginetest.User) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range []string{"", "/outbox", "/outbox?page=true", "/followers?page=true", "/following?page=true", "/featured"} {
		got := u.Ask(t, http.MethodGet, strings.TrimPrefix(u.ID, u.Home.URL)+path, nil)
		all[path] = fmt.Sprint(got.Status, " ", string(got.Body))
	}
	return all
}

// A user is exported and imported. On a server with the same public URL the user is as before. On
// another server the export becomes an archive.
func TestAUserIsExportedAndImported(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t)
	alice, near, far := a.CreateUser(t, "alice"), a.CreateUser(t, "near"), b.CreateUser(t, "far")
	befriend(t, far, alice)
	befriend(t, alice, far)
	befriend(t, alice, near)
	alice.Post(t, map[string]any{"content": "hello <b>world</b> & all", "visibility": "public"})
	secret, _ := alice.Post(t, map[string]any{"content": "between us", "visibility": "direct", "to": []string{far.ID}})
	alice.Do(t, "Block", map[string]any{"actorUri": "https://rude.example/users/x"})
	alice.Do(t, "CreateGroup", map[string]any{"name": "family"})
	if icon := alice.Upload(t, "/api/me/icon", "image/png", pictureOf(t, 40, 20)); icon.Status != http.StatusOK {
		t.Fatalf("the icon is answered %d %s", icon.Status, icon.Body)
	}
	enginetest.Eventually(t, "everybody is told of the profile", func() bool {
		return len(alice.Column(t, `SELECT '' FROM activities WHERE type = 'Update' AND NOT EXISTS (SELECT FROM deliveries WHERE status = 'pending')`)) > 0
	})
	file := filepath.Join(enginetest.Dir(t), "alice.tar.gz")
	var took struct {
		Rows   int
		SHA256 string
		Counts map[string]int
	}
	a.Run(t, "user", "export", "alice", file, "--json").Decode(t, &took)
	files := unpacked(t, file)
	expectExport(t, alice, took.Counts, files)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || len(took.SHA256) != 64 {
		t.Errorf("the export is %v, %v, with the sum %q", info.Mode(), err, took.SHA256)
	}
	runAll(t, a, []command{{"user export alice " + file, 73, "is there already"}, {"user export nobody " + file + "2", 67, ""}, {"user import " + file + " --yes", 75, "'lightweb serve' runs"}})

	guest := b.CreateUser(t, "guest")
	r := bring(t, b, file, "--as", "guest", "--yes")
	if r.From != alice.ID || r.Posts != 2 || r.Added != 2 || r.Follows != 2 || r.Blocks != 1 || r.Waiting != 3 {
		t.Errorf("the import on another server says %+v", r)
	}
	if again := bring(t, b, file, "--as", "guest", "--yes"); again.Added != 0 {
		t.Errorf("imported again it adds %d posts", again.Added)
	}
	expectArchived(t, guest, alice.ID, "between us", secret)
	if got := guest.Feed(t, "archive"); len(got) != 2 {
		t.Errorf("the archive has %d items, want the posts, and not the group", len(got))
	}
	enginetest.Eventually(t, "guest follows and blocks the same actors", func() bool {
		return len(guest.Column(t, `SELECT '' FROM relationships WHERE type = 'following' AND status = 'accepted'`)) == 2 && len(guest.Column(t, `SELECT '' FROM blocks`)) == 1
	})

	shown := shownTo(t, alice)
	a.Stop(t)
	home := enginetest.Make(t, "LIGHTWEB_PUBLIC_URL="+a.URL, "LIGHTWEB_LISTEN="+strings.TrimPrefix(a.URL, "http://"))
	home.URL = a.URL
	home.SQL(t, "postgres")
	if err := os.CopyFS(filepath.Join(home.DataDir, "instance"), os.DirFS(filepath.Join(a.DataDir, "instance"))); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"ed25519.pem", "rsa.pem"} { // the export of a user has no keys of the instance
		if err := os.Chmod(filepath.Join(home.DataDir, "instance", "keys", key), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if r := bring(t, home, file, "--verify-only"); r.Restored == nil || r.Restored.Rows != took.Rows || !r.Restored.DryRun {
		t.Errorf("--verify-only says %+v", r)
	}
	if r := bring(t, home, file, "--yes"); r.Restored == nil || r.Restored.Rows != took.Rows {
		t.Errorf("the import says %+v, want %d rows", r, took.Rows)
	}
	runAll(t, home, []command{{"user import " + file + " --yes", 73, "is here already"}})
	home.Start(t)
	back := &enginetest.User{Home: home, Name: "alice", ID: alice.ID, Token: alice.Token}
	if d := cmp.Diff(shown, shownTo(t, back)); d != "" {
		t.Errorf("what is served of alice has changed: %s", d)
	}
}

// Some files of an export are for other programs. expectExport compares them with the documents
// that the engine serves.
func expectExport(t *testing.T, u *enginetest.User, counts map[string]int, files map[string][]byte) {
	t.Helper()
	if got := enginetest.Fetch(t, u.ID); !bytes.Equal(got.Body, files["actor.json"]) {
		t.Errorf("actor.json is %s, want %s", files["actor.json"], got.Body)
	}
	for name, want := range map[string]int{"outbox": len(u.Column(t, `SELECT '' FROM activities WHERE direction = 'outbound'`)), "followers": 1, "following": 2, "likes": 0, "blocks": 1, "featured": 0} {
		var c struct {
			Type       string
			TotalItems int
			Items      []json.RawMessage `json:"orderedItems"`
		}
		if err := json.Unmarshal(files[name+".json"], &c); err != nil || c.Type != "OrderedCollection" || c.TotalItems != want || len(c.Items) != want || counts[name] != want {
			t.Errorf("%s.json is %+v, %v, counted %d; want %d items", name, c, err, counts[name], want)
		}
	}
	var keys, pictures int
	for name := range files {
		keys += strings.Count(name, "/keys/")
		pictures += strings.Count(name, "/media/")
	}
	if keys != 2 || pictures != 1 || !bytes.Contains(files["outbox.json"], []byte("between us")) {
		t.Errorf("the export has %d keys and %d pictures", keys, pictures)
	}
}

// expectArchived checks that a post is in the user's archive. Other users do not see the post, and
// it was sent to nobody.
func expectArchived(t *testing.T, u *enginetest.User, author, words, activity string) {
	t.Helper()
	found := u.Await(t, "archive", words, func(i enginetest.Item) bool { return i.ActivityURI == activity })
	if page := u.Ask(t, http.MethodGet, "/api/feed?feed=archive", nil); found.ActorURI != author || !strings.Contains(string(page.Body), words) {
		t.Errorf("the archived post is %+v in %s", found, page.Body)
	}
	if sent := u.Column(t, `SELECT type FROM activities WHERE type = 'Create'`); len(sent) != 0 {
		t.Errorf("an import sent %q", sent)
	}
	if main := u.Feed(t, "main"); slices.ContainsFunc(main, func(i enginetest.Item) bool { return i.ActivityURI == activity }) {
		t.Error("the archived post is in the main feed")
	}
	stranger := u.Home.CreateUser(t, "stranger_of_"+u.Name)
	if got := searched(t, u, words); !strings.Contains(got, `"archived":true`) || !strings.Contains(got, `"authorUri":"`+author+`"`) {
		t.Errorf("a search for %q finds %s", words, got)
	}
	if got := searched(t, stranger, words); strings.Contains(got, `"archived":true`) {
		t.Errorf("somebody else's search for %q finds %s", words, got)
	}
	if theirs := stranger.Feed(t, "archive"); len(theirs) != 0 {
		t.Errorf("another user's archive has %d posts", len(theirs))
	}
	if got := enginetest.Fetch(t, u.ID+"/outbox?page=true"); strings.Contains(string(got.Body), words) {
		t.Error("the archived post is in the outbox")
	}
}

func searched(t *testing.T, u *enginetest.User, words string) string {
	t.Helper()
	return string(u.Ask(t, http.MethodGet, "/api/search?q="+url.QueryEscape(words), nil).Body)
}

// mastodonFiles returns the files of an archive that Mastodon writes.
func mastodonFiles(t *testing.T) map[string]string {
	const me = "https://old.example/users/mia"
	post := func(n int, content string) string {
		return fmt.Sprintf(`{"id":"%[1]s/statuses/%[2]d/activity","type":"Create","actor":"%[1]s","published":"2024-05-0%[2]dT10:00:00Z","to":["https://www.w3.org/ns/activitystreams#Public"],"cc":[],
			"object":{"id":"%[1]s/statuses/%[2]d","type":"Note","published":"2024-05-0%[2]dT10:00:00Z","attributedTo":"%[1]s","content":%[3]q,"to":["https://www.w3.org/ns/activitystreams#Public"],
			"attachment":[{"type":"Document","mediaType":"image/png","name":"a bee on a flower","url":"/media_attachments/files/1/a.png"}],"replies":{"id":"%[1]s/statuses/%[2]d/replies","type":"Collection"}}}`, me, n, content)
	}
	return map[string]string{
		"actor.json": `{"@context":"https://www.w3.org/ns/activitystreams","id":"` + me + `","type":"Person","inbox":"` + me + `/inbox","outbox":"outbox.json","preferredUsername":"mia","name":"Mia","likes":"likes.json",
			"summary":"<p>of <b>old</b>\u0085\ufffd</p>","icon":{"type":"Image","url":"avatar.png"},"attachment":[{"type":"PropertyValue","name":"home","value":"<a href=\"https://mia.example\">mia.example</a>"}]}`,
		"outbox.json": `{"@context":"https://www.w3.org/ns/activitystreams","id":"outbox.json","type":"OrderedCollection","totalItems":3,"orderedItems":[` +
			post(1, "<p>first words<script>evil()</script></p>") + "," + post(2, "<p>second words</p>") + `,
			{"id":"` + me + `/statuses/3/activity","type":"Announce","actor":"` + me + `","object":"https://else.example/1"}]}`,
		"likes.json":                      `{"id":"likes.json","type":"OrderedCollection","orderedItems":["https://else.example/2"]}`,
		"bookmarks.json":                  `{"id":"bookmarks.json","type":"OrderedCollection","orderedItems":["https://else.example/2"]}`,
		"avatar.png":                      string(pictureOf(t, 40, 40)),
		"media_attachments/files/1/a.png": "not looked at",
	}
}

// zipped writes files into a zip and returns its path.
func zipped(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, content := range files {
		f, err := w.Create(name)
		if err == nil {
			_, err = io.WriteString(f, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return written(t, out.Bytes())
}

// tarred writes files into a tar that is packed with gzip. It returns the path of the tar.
func tarred(t *testing.T, files map[string]string) string {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	for name, content := range files {
		err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	return written(t, out.Bytes())
}

// written writes data to a file whose name has no extension. It returns the file's path.
func written(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The files that Mastodon gives its users can be imported. Of the imported data, other servers
// receive only the follows.
func mastodonsFilesAreImported(t *testing.T, a, b *enginetest.Instance) {
	mina, known, muted, rude := a.CreateUser(t, "mina"), b.CreateUser(t, "known"), b.CreateUser(t, "muted"), b.CreateUser(t, "rude")
	files := mastodonFiles(t)
	if r := bring(t, a, zipped(t, files), "--as", "mina", "--verify-only"); r.Kind != "archive" || r.Posts != 2 || r.Skipped != 1 || r.Added != 0 || r.Attachments != 2 || r.Likes != 1 || r.Bookmarks != 1 {
		t.Errorf("--verify-only says %+v", r)
	}
	for n, file := range []string{zipped(t, files), tarred(t, files)} {
		if r := bring(t, a, file, "--as", "mina", "--yes"); r.Posts != 2 || r.Added != 2*(1-n) || r.From != "https://old.example/users/mia" {
			t.Errorf("import %d says %+v", n, r)
		}
	}
	expectArchived(t, mina, "https://old.example/users/mia", "first words", "https://old.example/users/mia/statuses/1/activity")
	if page := mina.Ask(t, http.MethodGet, "/api/feed?feed=archive", nil); strings.Contains(string(page.Body), "evil") || !strings.Contains(string(page.Body), "a bee on a flower") {
		t.Errorf("the words are not sanitized, or the description of a picture is gone: %s", page.Body)
	}
	for _, name := range []string{"likes.json", "bookmarks.json", "following.json", "blocks.json"} {
		for _, damage := range []string{`{"orderedItems":["no id"]}`, `{"orderedItems":[{}]}`, `{"orderedItems":["https://else.example/2"`, `[]`} {
			damaged := mastodonFiles(t)
			damaged[name] = damage
			runAll(t, a, []command{{"user import " + zipped(t, damaged) + " --as mina --yes", 65, "damaged"}})
		}
	}
	shown := shownActor(t, mina)
	if shown.Text("name") != "Mia" || !strings.Contains(shown.Text("summary"), "of old") || shown.Sub("icon") == nil || len(shown.Subs("attachment")) != 1 {
		t.Errorf("the profile is %v", shown)
	}

	following := written(t, []byte("Account address,Show boosts,Notify on new posts,Languages\n"+strings.TrimPrefix(known.Handle, "@")+",true,false,\n"))
	mutes := written(t, []byte("Account address,Hide notifications\n"+muted.Handle+",true\n"))
	blocks := written(t, []byte(strings.TrimPrefix(rude.Handle, "@")+"\n"))
	runAll(t, a, []command{
		{"user import " + following + " --as mina", 64, "--yes"},
		{"user import " + blocks + " --as mina --yes", 64, "--list"},
		{"user import " + following + " --as mina --yes --list blocks", 64, "following"},
		{"user import " + following + " --yes", 64, "--as"},
		{"user import " + following + " --as nobody_here --yes", 67, ""},
		{"user import " + written(t, []byte("Account address\nno account\n")) + " --as mina --yes", 65, "line 2"},
		{"user import " + written(t, []byte("bad.example\nworse.example\n")) + " --as mina --yes -q", 0, ""},
		{"user import " + following + " --as mina --yes -q", 0, ""},
		{"user import " + mutes + " --as mina --yes -q", 0, ""},
		{"user import " + blocks + " --as mina --list blocks --yes -q", 0, ""},
	})
	enginetest.Eventually(t, "what the lists say is done", func() bool {
		config, err := os.ReadFile(filepath.Join(a.DataDir, "users", "mina", "config.json"))
		return err == nil && bytes.Contains(config, []byte(muted.ID)) && bytes.Contains(config, []byte("worse.example")) &&
			slices.Equal(mina.Column(t, `SELECT actor_uri FROM blocks`), []string{rude.ID}) &&
			slices.Equal(mina.Column(t, `SELECT actor_uri FROM relationships WHERE type = 'following' AND status = 'accepted'`), []string{known.ID})
	})
	enginetest.Eventually(t, "nothing waits any more", func() bool {
		var left int
		err := a.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT count(*) FROM wishes WHERE username = 'mina'`).Scan(&left)
		return err == nil && left == 0
	})
}

// An import is killed. The same command finishes it. So it is with an export. Nothing exists
// twice.
func TestAnExportAndAnImportThatAreKilledAreFinished(t *testing.T) {
	t.Parallel()
	const kills, posts, follows = 20, 3000, 500
	i := enginetest.Make(t)
	if got := i.Run(t, "user", "create", "kim"); got.Code != 0 {
		enginetest.Skip(t, "no PostgreSQL to test with:\n"+got.Stderr)
	}
	i.SQL(t, "postgres") // keeps the instance's PostgreSQL running between commands
	kim := &enginetest.User{Home: i, Name: "kim"}
	file := manyPosts(t, posts, follows)
	random := rand.New(rand.NewPCG(17, 3))
	began := time.Now()
	bring(t, i, file, "--as", "kim", "--verify-only")
	whole := time.Since(began)
	for range kills {
		i.RunUntil(t, time.Duration(random.Int64N(int64(whole*3/2))), "user", "import", file, "--as", "kim", "--yes")
	}
	if r := bring(t, i, file, "--as", "kim", "--yes"); r.Posts != posts || r.Follows != follows {
		t.Errorf("the last import says %+v", r)
	}
	var wishes int
	if err := i.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT count(*) FROM wishes`).Scan(&wishes); err != nil || wishes != follows {
		t.Errorf("%d follows wait, %v, want %d", wishes, err, follows)
	}
	if got := kim.Column(t, `SELECT count(*) FROM archived_posts`); got[0] != fmt.Sprint(posts) {
		t.Errorf("%s posts are there, want %d", got[0], posts)
	}

	dir := enginetest.Dir(t)
	for n := range kills {
		export := []string{"user", "export", "kim", filepath.Join(dir, fmt.Sprint(n, ".tar.gz"))}
		i.RunUntil(t, time.Duration(random.Int64N(int64(whole))), export...)
		if got := i.Run(t, export...); got.Code != 0 && got.Code != 73 {
			t.Errorf("an export after one that was killed ended with %d: %s", got.Code, got.Stderr)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != kills {
		t.Errorf("%d files are there, %v, want the exports alone", len(left), err)
	}
	for _, f := range left {
		if got := i.Run(t, "restore", filepath.Join(dir, f.Name()), "--user", "kim", "--dry-run"); got.Code != 0 {
			t.Errorf("%s is not whole: %d %s", f.Name(), got.Code, got.Stderr)
		}
	}
}

// An import that exceeds a limit is refused before anything changes. --verify-only refuses it,
// too.
func TestAnImportThatExceedsALimitChangesNothing(t *testing.T) {
	t.Parallel()
	i := enginetest.Make(t)
	runAll(t, i, []command{{"user create kim -q", 0, ""}})
	const waiting = `INSERT INTO wishes (username, kind, account, host, due_at) SELECT 'kim', 'follow', 'a' || n || '@x.example', 'x.example', now() FROM generate_series(1, 10000) n`
	if _, err := i.SQL(t, "lightweb").ExecContext(t.Context(), waiting); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(i.DataDir, "users", "kim", "config.json")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	var domains strings.Builder
	for n := range 1001 {
		fmt.Fprintf(&domains, "d%d.example\n", n)
	}
	var mutes, more strings.Builder
	mutes.WriteString("Account address,Hide notifications\n")
	more.WriteString("Account address,Hide notifications\n")
	for n := range 1001 {
		fmt.Fprintf(&mutes, "m%d@x.example,true\n", n)
		fmt.Fprintf(&more, "m%d@x.example,true\n", n+999)
	}
	few := strings.Join(strings.SplitAfter(mutes.String(), "\n")[:900], "")
	for _, flag := range []string{" --verify-only", " --yes"} {
		runAll(t, i, []command{
			{"user import " + written(t, []byte(domains.String())) + " --as kim" + flag, 65, "at most 1000"},
			{"user import " + written(t, []byte(mutes.String())) + " --as kim" + flag, 65, "at most 1000"},
			{"user import " + manyPosts(t, 2, 1) + " --as kim" + flag, 73, "more than 10000 accounts would wait"},
		})
	}
	kim := &enginetest.User{Home: i, Name: "kim"}
	if got := kim.Column(t, `SELECT count(*) FROM archived_posts`); got[0] != "0" {
		t.Errorf("%s posts are there, want none", got[0])
	}
	if after, err := os.Stat(path); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the configuration was written: %v, %v", after, err)
	}
	// Waiting mutes count once. So do actors that the user has muted already.
	old := written(t, []byte(few))
	runAll(t, i, []command{{"user import " + old + " --as kim --yes", 0, ""}, {"user import " + old + " --as kim --yes", 0, ""},
		{"user import " + written(t, []byte(more.String())) + " --as kim --yes", 65, "at most 1000"}})
}

// manyPosts writes an archive with the given number of posts and follows. It returns the archive's
// path.
func manyPosts(t *testing.T, posts, follows int) string {
	t.Helper()
	const me = "https://old.example/users/kim"
	list := func(n int, item func(n int) string) string {
		all := make([]string, n)
		for n := range all {
			all[n] = item(n)
		}
		return `{"type":"OrderedCollection","orderedItems":[` + strings.Join(all, ",") + `]}`
	}
	return tarred(t, map[string]string{
		"actor.json": `{"id":"` + me + `","type":"Person"}`,
		"outbox.json": list(posts, func(n int) string {
			return fmt.Sprintf(`{"id":"%[1]s/%[2]d/activity","type":"Create","actor":"%[1]s","object":{"id":"%[1]s/%[2]d","type":"Note","attributedTo":"%[1]s","content":"post %[2]d"}}`, me, n)
		}),
		"following.json": list(follows, func(n int) string { return fmt.Sprintf(`"https://peer.example/users/%d"`, n) }),
	})
}
