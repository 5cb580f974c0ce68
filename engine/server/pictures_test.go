package server_test

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

	"github.com/lightweb/lightweb/engine/picture"
	"github.com/lightweb/lightweb/engine/vocab"
)

func pngOf(t *testing.T, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func (f *fixture) upload(target, body, mediaType, token string) response {
	f.Helper()
	return ask(f, f.public, http.MethodPut, target, body, header("Content-Type", mediaType), bearerToken(token))
}

func TestAnUploadedPictureIsShownForGood(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token(f.alice, "write")
	f.outbox.result.ActivityID = f.local.NewActivityID(f.alice)
	var done struct {
		Success    bool
		URL        string
		ActivityID vocab.ID
	}
	f.upload("/api/me/icon", pngOf(t, 2000, 1000), "image/png", token).want(t, 200).decode(t, &done)
	if !done.Success || done.ActivityID != f.outbox.result.ActivityID || !strings.HasPrefix(done.URL, origin+"/users/alice/media/") {
		t.Errorf("answered %+v", done)
	}
	if a := f.outbox.asked.Action; a.Name != "UpdateProfile" || string(a.Params) != `{"icon":"`+done.URL+`"}` || f.outbox.asked.User != f.alice {
		t.Errorf("dispatched %s %s", a.Name, a.Params)
	}
	shown := f.get(done.URL).want(t, 200)
	i, err := png.Decode(bytes.NewReader(shown.body))
	if err != nil || i.Bounds().Dx() != picture.IconSide {
		t.Errorf("shown is %v, %v", i, err)
	}
	for name, want := range map[string]string{"Content-Type": "image/png", "Cache-Control": "public, max-age=31536000, immutable",
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox"} {
		if got := shown.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	f.get(done.URL, header("If-None-Match", shown.Header.Get("ETag"))).want(t, 304)

	f.upload("/api/me/image", pngOf(t, 30, 10), "image/png", token).want(t, 200)
	if p := string(f.outbox.asked.Action.Params); !strings.HasPrefix(p, `{"image":"`) {
		t.Errorf("dispatched %s", p)
	}
	done.URL = ""
	f.ask(http.MethodDelete, "/api/me/icon", bearerToken(token)).want(t, 200).decode(t, &done)
	if p := string(f.outbox.asked.Action.Params); p != `{"icon":""}` || !done.Success || done.URL != "" {
		t.Errorf("dispatched %s, answered %+v", p, done)
	}
}

func TestUploadsThatAreNoPicturesAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token, good := f.token(f.alice, "write"), pngOf(t, 3, 3)
	for _, tt := range []struct {
		name, target, body, mediaType, token string
		status                               int
		code                                 string
	}{
		{"an SVG", "/api/me/icon", `<svg xmlns="http://www.w3.org/2000/svg"/>`, "image/svg+xml", token, 415, "unsupported_picture"},
		{"an SVG for a PNG", "/api/me/icon", `<svg xmlns="http://www.w3.org/2000/svg"/>`, "image/png", token, 415, "unsupported_picture"},
		{"a PNG for a JPEG", "/api/me/icon", good, "image/jpeg", token, 415, "unsupported_picture"},
		{"no type", "/api/me/icon", good, "", token, 415, "unsupported_picture"},
		{"JSON", "/api/me/icon", `{}`, "application/json", token, 415, "unsupported_picture"},
		{"too many bytes", "/api/me/icon", good + strings.Repeat("x", picture.MaxBytes), "image/png", token, 413, "too_large"},
		{"too many pixels", "/api/me/image", pngOf(t, 4097, 1), "image/png", token, 413, "picture_too_large"},
		{"half a picture", "/api/me/icon", good[:50], "image/png", token, 422, "damaged_picture"},
		{"a query", "/api/me/icon?x=1", good, "image/png", token, 400, "bad_query"},
		{"a token to read", "/api/me/icon", good, "image/png", f.token(f.alice, "read"), 403, "insufficient_scope"},
		{"an LLM engine's", "/api/me/icon", good, "image/png", f.token(f.alice, "llm"), 403, "insufficient_scope"},
		{"no token", "/api/me/icon", good, "image/png", "", 401, "invalid_token"},
	} {
		var problem struct{ Error string }
		f.upload(tt.target, tt.body, tt.mediaType, tt.token).want(t, tt.status).decode(t, &problem)
		if problem.Error != tt.code {
			t.Errorf("%s: %q, want %q", tt.name, problem.Error, tt.code)
		}
	}
	if f.outbox.asked.Action.Name != "" {
		t.Errorf("dispatched %+v", f.outbox.asked)
	}
	if err := os.MkdirAll(filepath.Dir(f.registry.File(f.alice)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.registry.File(f.alice), []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	f.upload("/api/me/icon", good, "image/png", token).want(t, 409)
	f.ask(http.MethodDelete, "/api/me/icon", bearerToken(token)).want(t, 409)
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(f.registry.File(f.alice)), "media", "*")); err != nil || len(left) != 0 {
		t.Errorf("stored %q, %v", left, err)
	}
}

func TestOnlyPicturesAreShown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	name, err := f.registry.StorePicture(f.alice, []byte("picture"), "jpg")
	if err != nil {
		t.Fatal(err)
	}
	folder := "/users/alice/media/"
	if got := f.get(folder+name).want(t, 200).Header.Get("Content-Type"); got != "image/jpeg" {
		t.Errorf("shown as %q", got)
	}
	for _, none := range []string{folder, folder + "x.png", folder + "..%2fconfig.json", folder + "../config.json", folder + name + "/", folder + strings.ToUpper(name),
		"/users/bob/media/" + name, "/users/nobody/media/" + name, folder + path.Base(f.registry.File(f.alice))} {
		if got := f.get(none); got.StatusCode != 404 {
			t.Errorf("%s is answered %d", none, got.StatusCode)
		}
	}
	f.state(f.alice, "suspended")
	f.get(folder+name).want(t, 404)
}
