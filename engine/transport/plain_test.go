package transport_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/transport"
)

// A plain client obeys the guard, follows no redirect, and reads at most 1 MiB of an answer.
func TestAPlainClientIsBounded(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://10.0.0.1/", http.StatusFound)
		case "/large":
			_, _ = w.Write(make([]byte, 2<<20))
		default:
			_, _ = io.WriteString(w, r.UserAgent()+r.Header.Get("Signature"))
		}
	}))
	t.Cleanup(srv.Close)
	open := transport.New(transport.Config{AllowAddresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, AllowHTTP: true, UserAgent: "Lightweb/1"}, nil, nil)
	t.Cleanup(open.Close)
	get := func(c *http.Client, url string) (status int, body string, err error) {
		r, err := c.Get(url)
		if err != nil {
			return 0, "", err
		}
		defer r.Body.Close()
		data, err := io.ReadAll(r.Body)
		return r.StatusCode, string(data), err
	}
	if status, body, err := get(open.Plain(), srv.URL); status != 200 || body != "Lightweb/1" || err != nil {
		t.Errorf("an answer is %d %q, %v", status, body, err)
	}
	if status, _, err := get(open.Plain(), srv.URL+"/away"); status != http.StatusFound || err != nil {
		t.Errorf("a redirect is %d, %v; want it left alone", status, err)
	}
	if _, body, err := get(open.Plain(), srv.URL+"/large"); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") || len(body) > 1<<20 {
		t.Errorf("of a large answer %d bytes are read, %v", len(body), err)
	}
	shut := transport.New(transport.Config{}, nil, nil)
	t.Cleanup(shut.Close)
	for _, url := range []string{srv.URL, "https://127.0.0.1/", "https://localhost/", "file:///etc/passwd", "http://example.org/"} {
		if _, _, err := get(shut.Plain(), url); err == nil {
			t.Errorf("%s was asked", url)
		}
	}
}
