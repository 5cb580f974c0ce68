package engine_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// pictureOf returns a PNG of w by h pixels.
func pictureOf(t *testing.T, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A picture that a client uploads is public. Followers see it in place of the earlier picture.
func picturesAreTold(t *testing.T, a, b *enginetest.Instance) {
	iris, ivo := a.CreateUser(t, "iris"), b.CreateUser(t, "ivo")
	befriend(t, ivo, iris)
	shown := func() string {
		var page struct {
			Actors map[string]struct{ Icon string }
		}
		ivo.Ask(t, http.MethodGet, "/api/relationships?type=following&status=accepted", nil).Decode(t, &page)
		return page.Actors[iris.ID].Icon
	}
	var urls []string
	for n := range 5 {
		var done struct{ URL string }
		answer := iris.Upload(t, "/api/me/icon", "image/png", pictureOf(t, 30+n, 20))
		if answer.Status != http.StatusOK {
			t.Fatalf("a picture is answered %d %s", answer.Status, answer.Body)
		}
		answer.Decode(t, &done)
		urls = append(urls, done.URL)
	}
	enginetest.Eventually(t, "ivo sees the last picture", func() bool { return shown() == urls[4] })
	for n, url := range urls {
		got := enginetest.Fetch(t, url)
		if there := got.Status == http.StatusOK; there != (n >= 2) {
			t.Errorf("picture %d is answered %d", n, got.Status)
		}
		if got.Status == http.StatusOK && !strings.HasPrefix(string(got.Body), "\x89PNG") {
			t.Errorf("picture %d is %.20q", n, got.Body)
		}
	}
	kept, err := os.ReadDir(filepath.Join(a.DataDir, "users", "iris", "media"))
	if err != nil || len(kept) != 3 {
		t.Errorf("kept are %v, %v, want the one that is shown and two before", kept, err)
	}
	if got := a.Run(t, "user", "config", "get", "iris", "profile.icon"); path.Base(strings.TrimSpace(got.Stdout)) != path.Base(urls[4]) {
		t.Errorf("the file holds %q", got.Stdout)
	}
	if got := iris.Upload(t, "/api/me/icon", "image/svg+xml", []byte(`<svg/>`)); got.Status != http.StatusUnsupportedMediaType {
		t.Errorf("an SVG is answered %d %s", got.Status, got.Body)
	}
	if got := iris.Ask(t, http.MethodDelete, "/api/me/icon", nil); got.Status != http.StatusOK {
		t.Errorf("DELETE is answered %d %s", got.Status, got.Body)
	}
	enginetest.Eventually(t, "ivo sees no picture", func() bool { return shown() == "" })
}
