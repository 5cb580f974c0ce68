package page

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/browsertest"
)

// maxShot is the largest size of a screenshot in the documentation: this many bytes.
const maxShot = 200_000

// A browser obeys the content security policy of a page. It applies the style and shows the user's
// picture. It does not run a script that was injected into the page. With -update the test makes
// the screenshots in docs/pages.
func TestABrowserShowsPagesAndRunsNothing(t *testing.T) {
	t.Parallel()
	program := browsertest.Find(t)
	pages := map[string][]byte{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".png") {
			_, _ = w.Write(plainPicture(color.NRGBA{0xd0, 0x80, 0x20, 0xff}))
			return
		}
		w.Header().Set("Content-Security-Policy", ContentPolicy())
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(pages[r.URL.Path])
	}))
	t.Cleanup(srv.Close)
	p := alice()
	p.Icon = "http://" + srv.Listener.Addr().String() + "/a.png"
	answer := sample()[0]
	answer.Author, answer.IsOwn = Author{"Bob", "@bob@peer.example", "https://peer.example/bob"}, false
	pages["/list"] = List{Person: p, Posts: sample(), Next: next}.HTML()
	pages["/thread"] = Thread{Person: p, Post: sample()[1], Below: []Post{answer}, Next: never}.HTML()
	pages["/tag"] = List{Person: p, Posts: sample()[1:2], Tag: "bees", Next: never}.HTML()
	pages["/hostile"] = bytes.Replace(pages["/thread"], []byte("</main>"), []byte(`<script>document.title = "taken over"</script><b onclick="x()" style="display: none">hi</b></main>`), 1)
	srv.Start() // from here on, the handlers read pages

	for _, shot := range []struct {
		name, path, scheme string
		paper              color.NRGBA
	}{
		{"profile-light", "/list", "1", color.NRGBA{0xfb, 0xfb, 0xfa, 0xff}},
		{"profile-dark", "/list", "0", color.NRGBA{0x17, 0x19, 0x1c, 0xff}},
		{"tag-light", "/tag", "1", color.NRGBA{0xfb, 0xfb, 0xfa, 0xff}},
		{"post-light", "/thread", "1", color.NRGBA{0xfb, 0xfb, 0xfa, 0xff}},
	} {
		file := filepath.Join(t.TempDir(), "shot.png")
		browse(t, program, srv.URL+shot.path, "--screenshot="+file, "--window-size=800,900", "--hide-scrollbars", "--blink-settings=preferredColorScheme="+shot.scheme)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		seen, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if got := color.NRGBAModel.Convert(seen.At(2, 2)); got != shot.paper {
			t.Errorf("%s is on paper of the colour %v, want %v: the style does not count", shot.name, got, shot.paper)
		}
		if got := color.NRGBAModel.Convert(seen.At(136, 60)); shot.path == "/list" && got != (color.NRGBA{0xd0, 0x80, 0x20, 0xff}) {
			t.Errorf("%s has the colour %v where the picture is", shot.name, got)
		}
		if len(data) > maxShot {
			t.Errorf("%s has %d bytes", shot.name, len(data))
		}
		if *update {
			if err := os.WriteFile(filepath.Join("../../docs/pages", shot.name+".png"), data, 0o644); err != nil { //nolint:gosec // a page of the documentation
				t.Fatal(err)
			}
		}
	}
	dom := browse(t, program, srv.URL+"/hostile", "--dump-dom")
	if !strings.Contains(dom, "<title>On bees") || strings.Contains(dom, "<title>taken over") {
		t.Errorf("the script ran:\n%s", dom)
	}
}

// browse lets a headless browser open a page. It returns the output of the browser.
func browse(t *testing.T, program, url string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--user-data-dir=" + t.TempDir()}, append(args, url)...)
	var stderr bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(fmt.Errorf("run %s: %w\n%s", program, err, stderr.String()))
	}
	return string(out)
}

func plainPicture(c color.NRGBA) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, 80, 80))
	for n := range 80 * 80 {
		m.SetNRGBA(n%80, n/80, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err)
	}
	return b.Bytes()
}
