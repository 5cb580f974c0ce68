package server_test

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
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
	if head := f.ask(http.MethodHead, done.URL).want(t, 200); head.Header.Get("Content-Length") != strconv.Itoa(len(shown.body)) {
		t.Errorf("HEAD is answered with the length %q, want %d", head.Header.Get("Content-Length"), len(shown.body))
	}
	if part := f.get(done.URL, header("Range", "bytes=1-3")).want(t, 206); string(part.body) != "PNG" || part.Header.Get("Content-Type") != "image/png" {
		t.Errorf("a part is %q, of the type %q", part.body, part.Header.Get("Content-Type"))
	}

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

// unkept counts the bytes of a response and discards them.
type unkept struct {
	header http.Header
	n      int
}

func (u *unkept) Header() http.Header         { return u.header }
func (u *unkept) WriteHeader(int)             {}
func (u *unkept) Write(b []byte) (int, error) { u.n += len(b); return len(b), nil }

// The server sends a picture from its file, without reading the whole picture into memory. The
// test is not parallel, because it measures the memory of the process.
func TestAPictureIsNotReadIntoMemory(t *testing.T) {
	f := newFixture(t)
	const size, requests = 4 << 20, 8
	name, err := f.registry.StorePicture(f.alice, make([]byte, size), "png")
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range requests {
		got := &unkept{header: http.Header{}}
		f.public.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/users/alice/media/"+name, nil))
		if got.n != size {
			t.Fatalf("%d bytes were sent, want %d", got.n, size)
		}
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > size {
		t.Errorf("%d answers took %d bytes of memory", requests, took)
	}
}

func TestLargeAnswersAreBoundedTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	name, err := f.registry.StorePicture(f.alice, []byte("picture"), "jpg")
	if err != nil {
		t.Fatal(err)
	}
	_, small := f.post(f.alice, "x", start, vocab.Public)
	_, large := f.post(f.alice, strings.Repeat("x", 20<<10), start, vocab.Public)
	picture := "/users/alice/media/" + name
	from := func(address string) asking { return func(r *http.Request) { r.RemoteAddr = address + ":1" } }
	release := f.server.HoldAnswers(netip.MustParseAddr("192.0.2.1"))
	for _, target := range []string{picture, string(large)} {
		r := f.get(target, from("192.0.2.1")).want(t, 503)
		r.holds(t, []string{"crowded"}, nil)
		if r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("Retry-After") != "1" || r.Header.Get("ETag") != "" {
			t.Errorf("%s is refused with the headers %v", target, r.Header)
		}
		f.get(target, from("198.51.100.1")).want(t, 200)
		f.ask(http.MethodHead, target, from("192.0.2.1")).want(t, 200)
	}
	f.get(string(small), from("192.0.2.1")).want(t, 200)
	release()
	for range 3 {
		f.get(picture, from("192.0.2.1")).want(t, 200)
		f.get(string(large), from("192.0.2.1")).want(t, 200)
	}
	if n := f.server.HeldAnswers(); n != 0 {
		t.Errorf("%d bytes count as being sent when nothing is", n)
	}
}

// A client sends If-None-Match with a change. The server answers that the change was made.
func TestAChangeIsAnsweredWhateverTagsTheClientHas(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.token(f.alice, "write")
	f.outbox.result.ActivityID = f.local.NewActivityID(f.alice)
	has := header("If-None-Match", "*")
	put := ask(f, f.public, http.MethodPut, "/api/me/icon", pngOf(t, 30, 10), header("Content-Type", "image/png"), bearerToken(token), has)
	remove := f.ask(http.MethodDelete, "/api/me/icon", bearerToken(token), has)
	for _, r := range []response{put, remove} {
		var done struct{ ActivityID vocab.ID }
		r.want(t, 200).decode(t, &done)
		if done.ActivityID != f.outbox.result.ActivityID || r.Header.Get("ETag") != "" {
			t.Errorf("answered %s with the tag %q", r.body, r.Header.Get("ETag"))
		}
	}
}
