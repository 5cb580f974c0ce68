package engine

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/instance"
)

// Programs such as certbot write the renewed certificate over the old one. The listener uses it
// within a minute, and goes on with the old one while the files cannot be used.
func TestARenewedCertificateIsUsed(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var mu sync.Mutex // guards the clock
	clock := time.Now()
	dir := t.TempDir()
	c := &certificate{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), log: slog.New(slog.NewTextHandler(&log, nil)), now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return clock
	}}
	ends := writePair(t, c, 1)
	var e Engine
	e.in = &instance.Instance{}
	e.in.Config.TLS.Cert, e.in.Config.TLS.Key = c.cert, c.key
	p := &parts{public: &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), TLSConfig: &tls.Config{GetCertificate: c.current}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := e.servePublic(p, l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	defer serving.Wait()
	defer p.public.Close()

	shown := func() int64 {
		t.Helper()
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true}) // self-signed
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	for _, step := range []struct {
		when   string
		change func()
		after  time.Duration
		want   int64
	}{
		{"at first", func() {}, 0, 1},
		{"right after the renewal", func() { ends = writePair(t, c, 2) }, rereadEvery - time.Second, 1},
		{"a minute later", func() {}, time.Second, 2},
		{"after a broken file was written", func() { writeFile(t, c.key, nil) }, rereadEvery, 2},
		{"a minute after that", func() {}, rereadEvery, 2},
		{"after the file was mended", func() { ends = writePair(t, c, 3) }, rereadEvery, 3},
	} {
		step.change()
		mu.Lock()
		clock = clock.Add(step.after)
		mu.Unlock()
		if got := shown(); got != step.want {
			t.Errorf("%s certificate %d is shown, want %d", step.when, got, step.want)
		}
	}
	if lines := log.String(); strings.Count(lines, "certificate not read") != 1 || strings.Count(lines, "certificate renewed") != 2 {
		t.Errorf("the log has\n%s", lines)
	}
	pair, err := c.current(nil)
	if err != nil || !pair.Leaf.NotAfter.Equal(ends) {
		t.Errorf("the certificate ends at %s, %v; want %s", pair.Leaf.NotAfter, err, ends)
	}
}

// writePair writes a new certificate with a serial number, and its key. It returns when the
// certificate ends.
func writePair(t *testing.T, c *certificate, serial int64) time.Time {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: []string{"example.org"}, NotBefore: time.Now(),
		NotAfter: time.Now().Add(time.Duration(serial) * time.Hour).UTC().Truncate(time.Second)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, c.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}))
	writeFile(t, c.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	return template.NotAfter
}

func writeFile(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
