package server

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

func TestAClientIsItsAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, from string
		named      []string
		want       string
	}{
		{"IPv4", "192.0.2.1:5000", nil, "192.0.2.1/32"},
		{"IPv4 in IPv6", "[::ffff:192.0.2.1]:5000", nil, "192.0.2.1/32"},
		{"CLI-05 IPv6, one network", "[2001:db8:1:2:3::1]:5000", nil, "2001:db8:1:2::/64"},
		{"CLI-05 IPv6, the same", "[2001:db8:1:2:ffff::9]:6000", nil, "2001:db8:1:2::/64"},
		{"with a zone", "[fe80::1%eth0]:5000", nil, "fe80::/64"},
		{"CLI-05 who is no proxy names somebody", "192.0.2.1:5000", []string{"198.51.100.7"}, "192.0.2.1/32"},
		{"behind a proxy", "10.0.0.1:5000", []string{"198.51.100.7"}, "198.51.100.7/32"},
		{"behind two", "10.0.0.1:5000", []string{"198.51.100.7, 10.0.0.2"}, "198.51.100.7/32"},
		{"in two fields", "10.0.0.1:5000", []string{"198.51.100.7", "10.0.0.2"}, "198.51.100.7/32"},
		{"CLI-05 what the client itself wrote", "10.0.0.1:5000", []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7/32"},
		{"IPv6 behind a proxy", "10.0.0.1:5000", []string{"2001:db8:1:2::1"}, "2001:db8:1:2::/64"},
		{"a proxy that names nobody", "10.0.0.1:5000", nil, "10.0.0.1/32"},
		{"a proxy that names nothing readable", "10.0.0.1:5000", []string{"198.51.100.7, unknown"}, "10.0.0.1/32"},
		{"a proxy that asks for itself", "10.0.0.1:5000", []string{"10.0.0.3"}, "10.0.0.3/32"},
		{"no address", "@", nil, "invalid Prefix"},
	} {
		s := &clients{trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, log: slog.New(slog.DiscardHandler)}
		r := httptest.NewRequest("POST", "/inbox", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.from, c.named
		if got := s.clientOf(r).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestTheOperatorHearsOfAProxyThatIsNotTrusted(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	s := &clients{log: slog.New(slog.NewTextHandler(&logged, nil))}
	ask := func(from, named string) {
		r := httptest.NewRequest("POST", "/inbox", nil)
		r.RemoteAddr = from
		r.Header.Set("X-Forwarded-For", named)
		s.clientOf(r)
	}
	for _, from := range []string{"198.51.100.7:5000", "198.51.100.8:5000", "127.0.0.1:5000", "127.0.0.2:5000"} {
		ask(from, "10.0.0.1")
	}
	if n := strings.Count(logged.String(), "setting=trusted_proxies"); n != 2 {
		t.Errorf("the log names trusted_proxies %d times, want once for a stranger and once for a neighbour: %s", n, &logged)
	}
}
