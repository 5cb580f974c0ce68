package transport

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/dnstest"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// This test connects to nothing. It calls the guard as the dialer would.
func TestGuardRefusesAddresses(t *testing.T) {
	t.Parallel()
	g := newGuard(Config{})
	for _, tt := range []struct{ name, address, class string }{
		{"NET-01 loopback", "127.0.0.1", "loopback"},
		{"NET-01 all of loopback", "127.255.255.254", "loopback"},
		{"NET-01 private 10/8", "10.1.2.3", "private"},
		{"NET-01 private 172.16/12", "172.31.255.255", "private"},
		{"NET-01 private 192.168/16", "192.168.0.1", "private"},
		{"NET-01 cloud metadata", "169.254.169.254", "link-local"},
		{"NET-01 carrier-grade NAT", "100.64.0.1", "carrier-grade NAT"},
		{"NET-02 unspecified", "0.0.0.0", "unspecified"},
		{"NET-02 this network", "0.1.2.3", "unspecified"},
		{"NET-02 broadcast", "255.255.255.255", "broadcast"},
		{"NET-03 unspecified IPv6", "::", "unspecified"},
		{"NET-04 loopback IPv6", "::1", "loopback"},
		{"NET-04 mapped loopback", "::ffff:127.0.0.1", "loopback"},
		{"NET-04 mapped private", "::ffff:10.0.0.1", "private"},
		{"NET-04 mapped metadata", "::ffff:169.254.169.254", "link-local"},
		{"NET-04 IPv4-compatible", "::7f00:1", "special-purpose"},
		{"NET-04 IPv4-translated", "::ffff:0:7f00:1", "special-purpose"},
		{"NET-04 NAT64", "64:ff9b::7f00:1", "NAT64"},
		{"NET-04 NAT64 of a public address", "64:ff9b::808:808", "NAT64"},
		{"NET-04 local NAT64", "64:ff9b:1::7f00:1", "NAT64"},
		{"NET-04 6to4", "2002:7f00:1::", "6to4"},
		{"NET-04 Teredo", "2001:0:7f00:1::1", "Teredo"},
		{"NET-04 ORCHID", "2001:20::1", "special-purpose"},
		{"NET-04 unique local", "fc00::1", "private"},
		{"NET-04 unique local, assigned at random", "fd12:3456:789a::1", "private"},
		{"NET-04 metadata IPv6", "fd00:ec2::254", "private"},
		{"NET-04 link-local", "fe80::1", "link-local"},
		{"NET-04 link-local with zone", "fe80::1%eth0", "link-local"},
		{"NET-04 site-local", "fec0::1", "special-purpose"},
		{"NET-04 multicast IPv6", "ff02::1", "multicast"},
		{"NET-04 documentation IPv6", "2001:db8::1", "documentation"},
		{"NET-04 documentation IPv6, newer", "3fff::1", "documentation"},
		{"NET-04 discard", "100::1", "special-purpose"},
		{"NET-04 segment routing", "5f00::1", "special-purpose"},
		{"NET-05 benchmarking", "198.19.255.255", "benchmarking"},
		{"NET-05 protocol assignments", "192.0.0.8", "special-purpose"},
		{"NET-05 documentation 1", "192.0.2.1", "documentation"},
		{"NET-05 documentation 2", "198.51.100.1", "documentation"},
		{"NET-05 documentation 3", "203.0.113.1", "documentation"},
		{"NET-05 6to4 relay", "192.88.99.1", "6to4"},
		{"NET-05 multicast", "224.0.0.1", "multicast"},
		{"NET-05 multicast, last", "239.255.255.255", "multicast"},
		{"NET-05 reserved", "240.0.0.1", "reserved"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			network := "tcp4"
			if strings.Contains(tt.address, ":") {
				network = "tcp6"
			}
			err := g.checkAddress(network, net.JoinHostPort(tt.address, "443"), true)
			if fault.KindOf(err) != fault.Forbidden || !strings.Contains(err.Error(), tt.class+" address") {
				t.Errorf("check(%s) = %v, want Forbidden naming a %s address", tt.address, err, tt.class)
			}
			if strings.Contains(fault.Public(err), tt.class) || strings.Contains(fault.Public(err), tt.address) {
				t.Errorf("the public words %q tell what is where", fault.Public(err))
			}
		})
	}
}

func TestGuardAllowsAddresses(t *testing.T) {
	t.Parallel()
	loop := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00:7e57::/64")}
	for _, tt := range []struct {
		name      string
		allow     []netip.Prefix
		allowHTTP bool
		network   string
		address   string
		private   bool // whether the client dials a host name that is not public
		want      bool
	}{
		{name: "a public address", address: "8.8.8.8:443", want: true},
		{name: "a public address, IPv6", network: "tcp6", address: "[2606:4700::1111]:443", want: true},
		{name: "a public address, mapped", network: "tcp6", address: "[::ffff:8.8.8.8]:443", want: true},
		{name: "NET-07 another port", address: "8.8.8.8:8443"},
		{name: "NET-07 a mail port", address: "8.8.8.8:25"},
		{name: "port 80 without http", address: "8.8.8.8:80"},
		{name: "port 80 with http", allowHTTP: true, address: "8.8.8.8:80", want: true},
		{name: "a public address under a private name", address: "8.8.8.8:443", private: true},
		{name: "NET-01 no other network", network: "udp4", address: "8.8.8.8:443"},
		{name: "no address at all", address: "peer.example:443"},
		{name: "an allowed address at any port", allow: loop, address: "127.0.0.9:34567", want: true},
		{name: "an allowed address under a private name", allow: loop, address: "127.0.0.9:443", private: true, want: true},
		{name: "an allowed address, mapped", allow: loop, network: "tcp6", address: "[::ffff:127.0.0.9]:443", want: true},
		{name: "an allowed IPv6 address", allow: loop, network: "tcp6", address: "[fd00:7e57::1]:8080", want: true},
		{name: "only what is allowed", allow: loop, address: "10.0.0.1:443"},
		{name: "only what is allowed, IPv6", allow: loop, network: "tcp6", address: "[fd00:7e58::1]:443"},
		{name: "public addresses as before", allow: loop, address: "8.8.8.8:443", want: true},
		{name: "public addresses at their port as before", allow: loop, address: "8.8.8.8:8443"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := newGuard(Config{AllowAddresses: tt.allow, AllowHTTP: tt.allowHTTP})
			if tt.network == "" {
				tt.network = "tcp4"
			}
			err := g.checkAddress(tt.network, tt.address, !tt.private)
			if (err == nil) != tt.want || err != nil && fault.KindOf(err) != fault.Forbidden {
				t.Errorf("check(%s) = %v, want allowed: %v", tt.address, err, tt.want)
			}
		})
	}
}

func TestGuardURL(t *testing.T) {
	t.Parallel()
	open, allow := newGuard(Config{}), newGuard(Config{AllowAddresses: loopback().AllowAddresses})
	http, allowHTTP := newGuard(Config{AllowHTTP: true}), newGuard(loopback())
	for _, tt := range []struct {
		name  string
		guard *guard
		url   vocab.ID
		want  string // the URL to request; empty if the name is refused
	}{
		{"a name", open, "https://peer.example/users/a", "https://peer.example/users/a"},
		{"the port of https", open, "https://peer.example:443/a", "https://peer.example/a"},
		{"a name as it is signed", open, "https://PEER.Böse.example/a", "https://peer.xn--bse-sna.example/a"},
		{"no fragment", open, "https://peer.example/a#main-key", "https://peer.example/a"},
		{"the query as it is", open, "https://peer.example/a?b=%2F&c", "https://peer.example/a?b=%2F&c"},
		{"the path as it is", open, "https://peer.example/a%2Fb/%C3%A9", "https://peer.example/a%2Fb/%C3%A9"},
		{"NET-07 plain http", open, "http://peer.example/a", ""},
		{"plain http when allowed", http, "http://peer.example/a", "http://peer.example/a"},
		{"NET-07 http at the port of https", http, "http://peer.example:443/a", ""},
		{"NET-07 https at the port of http", http, "https://peer.example:80/a", ""},
		{"NET-07 another port", open, "https://peer.example:8443/a", ""},
		{"another port where the address may be allowed", allow, "https://peer.example:8443/a", "https://peer.example:8443/a"},
		{"NET-07 user info", open, "https://user@peer.example/a", ""},
		{"NET-07 data", open, "data:text/plain,a", ""},
		{"NET-07 file", open, "file:///etc/passwd", ""},
		{"NET-06 an address", open, "https://8.8.8.8/a", ""},
		{"NET-06 an IPv6 address", open, "https://[2606:4700::1111]/a", ""},
		{"NET-06 a loopback address", open, "https://127.0.0.1/a", ""},
		{"NET-06 a mapped address", open, "https://[::ffff:127.0.0.1]/a", ""},
		{"NET-06 decimal", open, "https://2130706433/a", ""},
		{"NET-06 octal", open, "https://0177.1/a", ""},
		{"NET-06 hexadecimal", open, "https://0x7f.0.0.0x1/a", ""},
		{"NET-06 hexadecimal, one label", open, "https://0x7f000001/a", ""},
		{"NET-06 hexadecimal without digits", open, "https://127.0.0.0x/a", ""},
		{"NET-06 short", open, "https://127.1/a", ""},
		{"NET-06 disguised where addresses are allowed", allow, "https://127.1/a", ""},
		{"NET-06 decimal where addresses are allowed", allow, "https://2130706433/a", ""},
		{"NET-06 localhost", open, "https://localhost/a", ""},
		{"NET-06 localhost with dot", open, "https://localhost./a", ""},
		{"NET-06 below localhost", open, "https://a.localhost/a", ""},
		{"NET-06 internal", open, "https://foo.internal/a", ""},
		{"NET-06 internal in capitals", open, "https://FOO.INTERNAL/a", ""},
		{"NET-06 local", open, "https://printer.local/a", ""},
		{"NET-06 home", open, "https://nas.home.arpa/a", ""},
		{"NET-06 single label", open, "https://redis/a", ""},
		{"a name that only looks reserved", open, "https://notlocal.example/a", "https://notlocal.example/a"},
		{"localhost where addresses are allowed", allow, "https://localhost:8443/a", "https://localhost:8443/a"},
		{"a single label where addresses are allowed", allow, "https://engine/a", "https://engine/a"},
		{"an allowed address", allow, "https://127.0.0.2:8443/a", "https://127.0.0.2:8443/a"},
		{"an allowed address over plain http", allow, "http://127.0.0.2:8080/a", ""},
		{"an allowed address over plain http when allowed", allowHTTP, "http://127.0.0.2:8080/a", "http://127.0.0.2:8080/a"},
		{"an address that is not allowed", allow, "https://10.0.0.1/a", ""},
		{"a public address where others are allowed", allow, "https://8.8.8.8/a", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			u, err := tt.guard.checkURL(tt.url)
			if tt.want == "" {
				if k := fault.KindOf(err); k != fault.Forbidden && k != fault.Invalid {
					t.Errorf("url(%s) = %v, %v, want refused", tt.url, u, err)
				}
				return
			}
			if err != nil || u.String() != tt.want {
				t.Errorf("url(%s) = %v, %v, want %s", tt.url, u, err, tt.want)
			}
		})
	}
}

// listenAt serves h on one loopback address. It returns the port.
func listenAt(t *testing.T, ip string, h http.HandlerFunc) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
	if err != nil {
		t.Skipf("this machine has no %s: %v", ip, err)
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close() // the listener was never used
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// names makes the client resolve host names with a name server on loopback.
func names(t *testing.T, c *Client) *dnstest.Server {
	t.Helper()
	s, err := dnstest.Start(t, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.guard.resolver = s.Resolver()
	return s
}

func TestGuardStandsAtTheDialer(t *testing.T) {
	t.Parallel()
	answers := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	port := listenAt(t, "127.0.0.2", answers)
	wall := listenAt(t, "127.0.0.3", func(http.ResponseWriter, *http.Request) {
		t.Error("a request reached an address that is not allowed")
	})
	cfg := loopback()
	cfg.AllowAddresses = []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}
	c, _ := newClient(t, cfg, closed(""))
	in, out := netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")
	zone := names(t, c)
	for name, addrs := range map[string][]netip.Addr{
		"in.example": {in}, "in.internal": {in}, "out.example": {out}, "out.internal": {out}, "both.example": {out, in},
		"six.example": {netip.MustParseAddr("::ffff:127.0.0.3")},
	} {
		zone.Say(name, addrs)
	}
	zone.Say("fails.example")
	for _, tt := range []struct {
		name, host string
		want       fault.Kind
	}{
		{name: "a name that resolves to an allowed address may use any port", host: "in.example:" + port},
		{name: "a private name that resolves to an allowed address", host: "in.internal:" + port},
		{name: "NET-08 a name that resolves to another address", host: "out.example:" + wall, want: fault.Forbidden},
		{name: "NET-08 a private name that resolves to another address", host: "out.internal:" + wall, want: fault.Forbidden},
		{name: "NET-04 a name that resolves to a mapped address", host: "six.example:" + wall, want: fault.Forbidden},
		{name: "NET-09 of two addresses the one that passes", host: "both.example:" + port},
		{name: "a name that does not resolve", host: "none.example:" + port, want: fault.NoHost},
		{name: "a name for which the name server fails", host: "fails.example:" + port, want: fault.Unavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			res, err := c.Get(context.Background(), Request{URL: vocab.ID("http://" + tt.host + "/")})
			if tt.want == fault.Internal && err == nil && res.Status == http.StatusOK {
				return
			}
			if tt.want == fault.Internal || fault.KindOf(err) != tt.want {
				t.Errorf("Get(%s) = %v, want kind %v", tt.host, err, tt.want)
			}
			// NET-11b: the guard also checks POST requests.
			if _, err := c.Post(context.Background(), Post{Inbox: vocab.ID("http://" + tt.host + "/"), Body: []byte(note), As: *testKeys()}); fault.KindOf(err) != tt.want {
				t.Errorf("Post(%s) = %v, want kind %v", tt.host, err, tt.want)
			}
		})
	}
}

// A name server does not answer, such as during its restart. That says nothing about whether the
// host exists.
func TestAHostWhoseNameCannotBeLookedUpMayExist(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t, loopback(), closed(""))
	for _, tt := range []struct {
		name string
		err  error
	}{
		{"refusing", syscall.ECONNREFUSED},
		{"unreachable", syscall.ENETUNREACH},
		{"silent", os.ErrDeadlineExceeded},
	} {
		c.guard.resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "udp", Err: tt.err}
		}}
		if _, err := c.Get(t.Context(), Request{URL: "http://peer.example/"}); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a name server that is %s: %v, want Unavailable", tt.name, err)
		}
	}
}
