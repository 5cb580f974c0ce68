package instance

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/keyspace"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Config holds the settings that are read before the instance is opened. The registry has the
// configuration that may change while the engine serves. Begin with DefaultConfig, and check the
// result with Validate.
type Config struct {
	Version string // the version of this program, for NodeInfo and User-Agent; not a setting

	PublicURL   string // the origin of every id, such as https://example.org: scheme, host, port if unusual, no path
	Listen      string // host:port of the public listener
	AdminListen string // host:port of /metrics, /healthz and /readyz: keep it off the internet
	AdminPprof  bool   // profiles of the running process on the admin listener, below /debug/pprof/
	DataDir     string // absolute path; has instance keys, the registry, and private servers
	UsersDir    string // absolute path; has a folder for each user, with keys and config.json

	Database struct {
		// URL names the server, as postgres://…; lightweb chooses the names of the databases on
		// it. If it is empty, there is a private cluster in DataDir.
		URL            Secret
		MaxConnections int    // the most connections to all users' databases together: 4 to 10000
		Name, Template string // the names of the instance database and of the template, if several instances share a server; not settings
	}
	Redis struct {
		// URL is the URL of the Redis for the cache, and also for the events unless
		// EventsURL is set. If it is empty, there is a private Redis in DataDir.
		URL       Secret
		EventsURL Secret // the URL of the Redis for the streams of events
	}
	Events struct {
		MaxLen int   // events stored on a user's stream: 1000 to 1000000
		Memory int64 // the memory limit of all streams together, in bytes: 16 MiB to 1 TiB
	}
	TLS struct {
		Cert, Key string // PEM files, both or neither; without them the listener has plain HTTP, for a proxy in front of it
	}
	TrustedProxies []netip.Prefix // proxies whose X-Forwarded-For and X-Forwarded-Proto are believed

	Federation struct {
		AllowAddresses []netip.Prefix // private and local addresses that may be contacted, at any port
		AllowHTTP      bool           // permit peers without TLS, and a public_url without it
		Mode           string         // open: all except blocked domains; allowlist: only allowed domains; paused: no server, for now
		SecureMode     bool           // show users, posts and contacts only to signed requests; mode allowlist does so too
		DeliverBlocks  bool           // tell an actor that a user blocks it
		SignatureFirst string         // dialect of the first request to an unknown host: rfc9421 or cavage; not of one that takes something back
		PageSize       int            // items in a page of a collection: 1 to 100
	}
	OIDC struct {
		Issuer           string // the OpenID provider that users may sign in with; empty: none
		ClientID         string // the id of this server at the provider
		ClientSecretFile string // holds the secret of the client; empty: a public client
	}
	API struct {
		CORSOrigins []string // origins of pages that may use the client API, such as https://app.example.org
	}
	Cache struct {
		PageEntries int           // entries of a feed on a page of the cache's index: 100 to 10000
		ActorTTL    time.Duration // how long a stored remote actor is used without a new fetch: 1m to 720h
	}
	Delivery struct {
		Concurrency     int // parallel requests in total: 1 to 10000
		HostConcurrency int // parallel requests to one host: 1 to Concurrency
		// Timeout is the time limit of one attempt, connecting included: 10ms to 5m.
		Timeout time.Duration
		// Retention is the time for which the results of an activity's deliveries are
		// stored: 240h to 87600h.
		Retention time.Duration
	}
	Conversations struct {
		// Retention is the time for which messages of the conversations that users host
		// are stored: 24h to 87600h.
		Retention time.Duration
	}
	Limits struct {
		Body             int64 // bytes of one request: 1 KiB to 64 MiB
		MLSBody          int64 // bytes of a request that brings an MLS message from a known sender to an inbox: 1 KiB to 24 MiB
		InboxAddressRate Rate  // inbox requests from one address, or one IPv6 /64 network
		InboxHostRate    Rate  // inbox requests accepted from one host
		InboxActorRate   Rate  // inbox requests accepted from one actor
		KeyFetchRate     Rate  // actors fetched for their key, per registrable domain
	}
	Retention struct {
		RemoteDays int // days until activities from other servers are pruned, unless the user interacted: 0 to 36500; 0: never
	}
	Pages        bool          // offer web pages about users and their public posts, unless secure mode is on
	DrainTimeout time.Duration // how long requests and deliveries under way may take after the stop: 0 to 10m
}

// DefaultConfig returns the default settings of an instance in dataDir.
func DefaultConfig(dataDir string) Config {
	c := Config{
		PublicURL:    "http://127.0.0.1:8080",
		Listen:       "127.0.0.1:8080",
		AdminListen:  "127.0.0.1:9090",
		DataDir:      dataDir,
		UsersDir:     filepath.Join(dataDir, "users"),
		DrainTimeout: 30 * time.Second,
		Pages:        true,
	}
	c.Database.MaxConnections = 64
	c.Events.MaxLen = 10_000
	c.Events.Memory = 512 << 20
	c.Federation.Mode = "open"
	c.Federation.SignatureFirst = "rfc9421"
	c.Federation.PageSize = 20
	c.Cache.PageEntries = 500
	c.Cache.ActorTTL = 24 * time.Hour
	c.Delivery.Concurrency = 128
	c.Delivery.HostConcurrency = 4
	c.Delivery.Timeout = 10 * time.Second
	c.Delivery.Retention = 2160 * time.Hour
	c.Conversations.Retention = 720 * time.Hour
	c.Limits.Body = 1 << 20
	c.Limits.MLSBody = 16 << 20
	c.Limits.InboxAddressRate = Rate{Events: 200, Burst: 4000}
	c.Limits.InboxHostRate = Rate{Events: 50, Burst: 1000}
	c.Limits.InboxActorRate = Rate{Events: 10, Burst: 300}
	c.Limits.KeyFetchRate = Rate{Events: 20.0 / 60, Burst: 20}
	c.Retention.RemoteDays = 180
	return c
}

// SettingError names a setting that cannot be used, and says why. It unwraps to a fault.Config.
type SettingError struct {
	Key     string // as in the configuration file, such as federation.page_size
	Problem string // the value and what is wrong with it; never the value of a secret
	Hint    string
}

func (e *SettingError) Error() string { return e.Key + ": " + e.Problem }

func (e *SettingError) Unwrap() error { return fault.New(fault.Config, e.Error()).WithHint(e.Hint) }

// Validate returns a *SettingError about the first setting that cannot be used, or nil.
func (c Config) Validate() error {
	for _, check := range []func(Config) error{
		Config.checkAddresses, Config.checkOrigins, Config.checkFolders, Config.checkDatabase, Config.checkRedis, Config.checkTLS,
		Config.checkChoices, Config.checkBounds, Config.checkRates, Config.checkOIDC,
	} {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) checkAddresses() error {
	if err := c.checkPublicURL(); err != nil {
		return err
	}
	for _, l := range []struct{ key, address string }{{"listen", c.Listen}, {"admin_listen", c.AdminListen}} {
		if err := checkListen(l.key, l.address); err != nil {
			return err
		}
	}
	if c.Listen == c.AdminListen && !strings.HasSuffix(c.Listen, ":0") {
		return &SettingError{"admin_listen", fmt.Sprintf("%q is the address of listen too", c.AdminListen), "give the admin listener a port of its own, such as 127.0.0.1:9090"}
	}
	return nil
}

func (c Config) checkPublicURL() error {
	const key = "public_url"
	wrong := &SettingError{key, fmt.Sprintf("%q is not an origin", c.PublicURL), "write scheme and host only, such as https://example.org"}
	u, err := url.Parse(c.PublicURL)
	if err != nil {
		return wrong
	}
	id, err := vocab.ParseID(c.PublicURL)
	if err != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || strings.Contains(c.PublicURL, "#") {
		return wrong
	}
	// Many peers compare ids as text, so the origin must be in the one form that they all write.
	if origin := id.Origin(); origin != c.PublicURL {
		wrong.Problem, wrong.Hint = fmt.Sprintf("%q is not in canonical form", c.PublicURL), "write "+origin
		return wrong
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) && !c.Federation.AllowHTTP {
		return &SettingError{key, fmt.Sprintf("%q: peers take ids of a public host only with https", c.PublicURL), "write https://" + u.Host + ", or set federation.allow_http for a private network"}
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// IsSecure reports whether users are shown only to requests that are signed.
func (c Config) IsSecure() bool { return c.Federation.SecureMode || c.Federation.Mode == "allowlist" }

func checkListen(key, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return &SettingError{key, fmt.Sprintf("%q is not host:port", address), "write an address such as 127.0.0.1:8080, or :8080 for all of this machine's"}
	}
	return nil
}

// checkOrigins refuses a text that no browser sends as the origin of a page.
func (c Config) checkOrigins() error {
	for _, o := range c.API.CORSOrigins {
		u, err := url.Parse(o)
		if err != nil || u.Scheme == "" || u.Host == "" || o != strings.ToLower(u.Scheme+"://"+u.Host) {
			return &SettingError{"api.cors_origins", fmt.Sprintf("%.100q is not an origin", o), "write scheme, host and port if unusual, in lower case, such as https://app.example.org"}
		}
	}
	return nil
}

func (c Config) checkFolders() error {
	for _, d := range []struct{ key, dir string }{{"data_dir", c.DataDir}, {"users_dir", c.UsersDir}} {
		if !filepath.IsAbs(d.dir) {
			return &SettingError{d.key, fmt.Sprintf("%q is not an absolute path", d.dir), "write the path from the root, such as /var/lib/lightweb"}
		}
	}
	return nil
}

func (c Config) checkDatabase() error {
	if c.Database.URL == "" {
		return nil
	}
	// The error of url.Parse contains the URL and so the password, so it is not passed on.
	u, err := url.Parse(c.Database.URL.Reveal())
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return &SettingError{"database.url", "the value is not a postgres:// URL", "write postgres://user@host:5432, or postgres://user@/?host=/run/postgresql for a socket"}
	}
	return nil
}

func (c Config) checkRedis() error {
	if c.Redis.URL == "" && c.Redis.EventsURL != "" {
		return &SettingError{"redis.events_url", "it is set, and redis.url is not", "set redis.url too, or neither for a private Redis"}
	}
	for _, r := range []struct {
		key string
		url Secret
	}{{"redis.url", c.Redis.URL}, {"redis.events_url", c.Redis.EventsURL}} {
		if r.url == "" {
			continue
		}
		if err := keyspace.CheckURL(r.url.Reveal()); err != nil {
			return &SettingError{r.key, fault.Public(err), fault.Hint(err)}
		}
	}
	return nil
}

func (c Config) checkTLS() error {
	switch {
	case c.TLS.Cert != "" && c.TLS.Key == "":
		return &SettingError{"tls.key", "no key is set for tls.cert", "set both, or neither behind a proxy"}
	case c.TLS.Cert == "" && c.TLS.Key != "":
		return &SettingError{"tls.cert", "no certificate is set for tls.key", "set both, or neither behind a proxy"}
	}
	return nil
}

func (c Config) checkChoices() error {
	for _, f := range []struct {
		key, value string
		choices    []string
	}{
		{"federation.mode", c.Federation.Mode, []string{"open", "allowlist", "paused"}},
		{"federation.signature_first", c.Federation.SignatureFirst, []string{"rfc9421", "cavage"}},
	} {
		if !slices.Contains(f.choices, f.value) {
			return &SettingError{f.key, fmt.Sprintf("%q is not a choice", f.value), "write " + strings.Join(f.choices, " or ")}
		}
	}
	return nil
}

func (c Config) checkBounds() error {
	for _, f := range []struct {
		key            string
		value, min, to int64
		words          func(int64) string
	}{
		{"database.max_connections", int64(c.Database.MaxConnections), 4, 10_000, plain},
		{"events.maxlen", int64(c.Events.MaxLen), 1000, 1_000_000, plain},
		{"events.memory", c.Events.Memory, 16 << 20, 1 << 40, plain},
		{"federation.page_size", int64(c.Federation.PageSize), 1, 100, plain},
		{"cache.page_entries", int64(c.Cache.PageEntries), 100, 10_000, plain},
		{"cache.actor_ttl", int64(c.Cache.ActorTTL), int64(time.Minute), int64(720 * time.Hour), duration},
		{"delivery.concurrency", int64(c.Delivery.Concurrency), 1, 10_000, plain},
		{"delivery.host_concurrency", int64(c.Delivery.HostConcurrency), 1, int64(c.Delivery.Concurrency), plain},
		{"delivery.timeout", int64(c.Delivery.Timeout), int64(10 * time.Millisecond), int64(5 * time.Minute), duration},
		{"delivery.retention", int64(c.Delivery.Retention), int64(240 * time.Hour), int64(87_600 * time.Hour), duration},
		{"conversations.retention", int64(c.Conversations.Retention), int64(24 * time.Hour), int64(87_600 * time.Hour), duration},
		{"limits.body", c.Limits.Body, 1 << 10, 64 << 20, plain},
		{"limits.mls_body", c.Limits.MLSBody, 1 << 10, 24 << 20, plain},
		{"retention.remote_days", int64(c.Retention.RemoteDays), 0, MaxDays, plain},
		{"drain_timeout", int64(c.DrainTimeout), 0, int64(10 * time.Minute), duration},
	} {
		if f.value < f.min || f.value > f.to {
			return &SettingError{f.key, f.words(f.value) + " is out of bounds", "take a value from " + f.words(f.min) + " to " + f.words(f.to)}
		}
	}
	return nil
}

// MaxDays is the largest value of a setting that is a number of days: a hundred years.
const MaxDays = 36_500

func plain(n int64) string    { return strconv.FormatInt(n, 10) }
func duration(n int64) string { return time.Duration(n).String() }

func (c Config) checkRates() error {
	for _, f := range []struct {
		key  string
		rate Rate
	}{
		{"limits.inbox_address_rate", c.Limits.InboxAddressRate},
		{"limits.inbox_host_rate", c.Limits.InboxHostRate},
		{"limits.inbox_actor_rate", c.Limits.InboxActorRate},
		{"limits.key_fetch_rate", c.Limits.KeyFetchRate},
	} {
		if r := f.rate; r != (Rate{}) && (!(r.Events > 0) || math.IsInf(r.Events, 0) || r.Burst < 1) {
			return &SettingError{f.key, "the rate lets nothing through", "write a rate such as '50/s burst 1000', or off"}
		}
	}
	return nil
}
