package cmd

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lightweb/lightweb/engine/instance"
)

// config is the configuration that results from flags, environment and file.
type config struct {
	Engine    instance.Config
	LogLevel  slog.Level
	LogFormat string // auto, text or json

	file    string            // the configuration file that was read, empty for none
	origins map[string]origin // where each setting was written that does not have its default
}

func defaultConfig(dataDir string) *config {
	return &config{Engine: instance.DefaultConfig(dataDir), LogFormat: "auto", origins: map[string]origin{}}
}

// setting is one setting. Everything about it derives from its row: how it is read and shown,
// its environment variable, its flag and its line in the documentation.
type setting struct {
	key     string
	help    string
	at      func(*config) pflag.Value
	secret  bool
	initial string // the default in words, if it depends on the machine

	// flag is the name of the flag, and arg the name of its value in help. Both are empty if the
	// setting has no flag.
	flag, arg string
	// command is the only command that has the flag. If it is empty, all commands have the flag.
	command  string
	fromFlag func(string) (string, error) // converts the flag's value; nil if it needs none
}

// env returns the name of the setting's environment variable.
func (s *setting) env() string {
	return "LIGHTWEB_" + strings.ToUpper(strings.ReplaceAll(s.key, ".", "_"))
}

// wrongValue returns the error for a value of the setting that cannot be read. Its hint explains
// the setting.
func (s *setting) wrongValue(err error) *instance.SettingError {
	return &instance.SettingError{Key: s.key, Problem: err.Error(), Hint: s.key + ": " + strings.ReplaceAll(s.help, "`", "'")}
}

// settings are all settings, in the order of the documentation.
var settings = []setting{
	{key: "public_url", at: func(c *config) pflag.Value { return (*text)(&c.Engine.PublicURL) }, flag: "domain", arg: "HOST", fromFlag: domainURL,
		help: "origin of every id: scheme and host, no path; http only for loopback or with `federation.allow_http`. `--domain example.org` means `https://example.org`"},
	{key: "listen", at: func(c *config) pflag.Value { return (*text)(&c.Engine.Listen) }, flag: "listen", arg: "ADDRESS", command: "serve",
		help: "address of the public listener"},
	{key: "admin_listen", at: func(c *config) pflag.Value { return (*text)(&c.Engine.AdminListen) }, flag: "admin-listen", arg: "ADDRESS", command: "serve",
		help: "address of metrics and health checks; keep it off the internet. A request is answered only if it names localhost, a loopback address or the IP address that it reaches: any other name, such as `lightweb:9090`, gets 403"},
	{key: "admin.pprof", at: func(c *config) pflag.Value { return (*truth)(&c.Engine.AdminPprof) },
		help: "profiles of the running engine on the admin listener, below `/debug/pprof/`"},
	{key: "data_dir", at: func(c *config) pflag.Value { return (*path)(&c.Engine.DataDir) }, flag: "data-dir", arg: "DIR",
		initial: "`/var/lib/lightweb` as root, else `$XDG_DATA_HOME/lightweb` or `~/.local/share/lightweb`",
		help:    "folder of keys, registry and the private database"},
	{key: "users_dir", at: func(c *config) pflag.Value { return (*path)(&c.Engine.UsersDir) }, initial: "`<data_dir>/users`",
		help: "folder of the users' keys and configuration, one folder each"},
	{key: "database.url", at: func(c *config) pflag.Value { return (*secret)(&c.Engine.Database.URL) }, secret: true, flag: "database-url", arg: "URL",
		help: "PostgreSQL server, as `postgres://user@host:5432`; empty: a private one. Better in a file: the environment and flags can be read by others"},
	{key: "database.max_connections", at: func(c *config) pflag.Value { return (*whole)(&c.Engine.Database.MaxConnections) },
		help: "connections at once to users' databases, all together; some 20 more are used beside: 4 to 10000"},
	{key: "redis.url", at: func(c *config) pflag.Value { return (*secret)(&c.Engine.Redis.URL) }, secret: true, flag: "redis-url", arg: "URL",
		help: "Redis of the cache, as `redis://host:6379`, `unix:///run/redis.sock`, with `?master_name=` for Sentinel or `?cluster=true`; empty: a private one"},
	{key: "redis.events_url", at: func(c *config) pflag.Value { return (*secret)(&c.Engine.Redis.EventsURL) }, secret: true, initial: "that of `redis.url`",
		help: "Redis of the users' streams of events, where it is another one than that of the cache"},
	{key: "events.maxlen", at: func(c *config) pflag.Value { return (*whole)(&c.Engine.Events.MaxLen) },
		help: "events kept on a user's stream: 1000 to 1000000"},
	{key: "events.memory", at: func(c *config) pflag.Value { return (*size)(&c.Engine.Events.Memory) },
		help: "memory of all streams together: 16MiB to 1TiB. Beyond it the streams of users who were idle for longest are shortened"},
	{key: "tls.cert", at: func(c *config) pflag.Value { return (*path)(&c.Engine.TLS.Cert) },
		help: "PEM file with the certificate chain; empty: plain HTTP behind a proxy. A renewed one is used within a minute"},
	{key: "tls.key", at: func(c *config) pflag.Value { return (*path)(&c.Engine.TLS.Key) },
		help: "PEM file with the certificate's key"},
	{key: "trusted_proxies", at: func(c *config) pflag.Value { return (*prefixes)(&c.Engine.TrustedProxies) },
		help: "networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed, such as `10.0.0.0/8`"},
	{key: "federation.allow_addresses", at: func(c *config) pflag.Value { return (*prefixes)(&c.Engine.Federation.AllowAddresses) },
		help: "networks beyond the public internet that may be contacted, at any port"},
	{key: "federation.allow_http", at: func(c *config) pflag.Value { return (*truth)(&c.Engine.Federation.AllowHTTP) },
		help: "talk to servers without TLS, and be one"},
	{key: "federation.mode", at: func(c *config) pflag.Value { return (*text)(&c.Engine.Federation.Mode) },
		help: "`open`: every domain that is not blocked; `allowlist`: allowed domains only; `paused`: nothing is taken from other servers, or sent to them, for now"},
	{key: "federation.secure_mode", at: func(c *config) pflag.Value { return (*truth)(&c.Engine.Federation.SecureMode) },
		help: "show users, what they wrote and who they know only to who signs the request; mode `allowlist` does that too"},
	{key: "federation.signature_first", at: func(c *config) pflag.Value { return (*text)(&c.Engine.Federation.SignatureFirst) },
		help: "signature tried first on an unknown host: `rfc9421` or `cavage`; a Delete, Undo or Move is tried with `cavage`"},
	{key: "federation.deliver_blocks", at: func(c *config) pflag.Value { return (*truth)(&c.Engine.Federation.DeliverBlocks) },
		help: "tell an actor that a user blocks it; it learns that the follows end in any case"},
	{key: "federation.page_size", at: func(c *config) pflag.Value { return (*whole)(&c.Engine.Federation.PageSize) },
		help: "items in a page of a collection: 1 to 100"},
	{key: "api.cors_origins", at: func(c *config) pflag.Value { return (*words)(&c.Engine.API.CORSOrigins) },
		help: "origins whose pages may use the client API in a browser, such as `https://app.example.org`"},
	{key: "oidc.issuer", at: func(c *config) pflag.Value { return (*text)(&c.Engine.OIDC.Issuer) },
		help: "OpenID provider that users may sign in by, as its documents spell it, such as `https://id.example.org/realms/people`; empty: none"},
	{key: "oidc.client_id", at: func(c *config) pflag.Value { return (*text)(&c.Engine.OIDC.ClientID) },
		help: "as the provider knows this server. It sends browsers back to `<public_url>/api/session/oidc/callback`"},
	{key: "oidc.client_secret_file", at: func(c *config) pflag.Value { return (*path)(&c.Engine.OIDC.ClientSecretFile) },
		help: "file with the secret that the provider gave; empty: a public client"},
	{key: "cache.page_entries", at: func(c *config) pflag.Value { return (*whole)(&c.Engine.Cache.PageEntries) },
		help: "entries of a feed that the cache holds on one page of its index: 100 to 10000. It holds 20 pages of a feed"},
	{key: "cache.actor_ttl", at: func(c *config) pflag.Value { return (*span)(&c.Engine.Cache.ActorTTL) },
		help: "how long a remote actor is believed: 1m to 720h"},
	{key: "delivery.concurrency", at: func(c *config) pflag.Value { return (*whole)(&c.Engine.Delivery.Concurrency) },
		help: "deliveries at once: 1 to 10000"},
	{key: "delivery.host_concurrency", at: func(c *config) pflag.Value { return (*whole)(&c.Engine.Delivery.HostConcurrency) },
		help: "deliveries at once to one host"},
	{key: "delivery.timeout", at: func(c *config) pflag.Value { return (*span)(&c.Engine.Delivery.Timeout) },
		help: "time for one attempt: 10ms to 5m"},
	{key: "delivery.retention", at: func(c *config) pflag.Value { return (*span)(&c.Engine.Delivery.Retention) },
		help: "how long it is remembered what became of the deliveries of an activity: 240h to 87600h"},
	{key: "conversations.retention", at: func(c *config) pflag.Value { return (*span)(&c.Engine.Conversations.Retention) },
		help: "how long messages of encrypted conversations are kept for their members: 24h to 87600h"},
	{key: "limits.body", at: func(c *config) pflag.Value { return (*size)(&c.Engine.Limits.Body) },
		help: "largest request, in bytes or as `512KiB`: 1KiB to 64MiB"},
	{key: "limits.mls_body", at: func(c *config) pflag.Value { return (*size)(&c.Engine.Limits.MLSBody) },
		help: "largest request to an inbox that brings an MLS message of an actor who may write to a user in private: 1KiB to 24MiB"},
	{key: "limits.inbox_address_rate", at: func(c *config) pflag.Value { return (*rate)(&c.Engine.Limits.InboxAddressRate) },
		help: "inbox requests from one address, or one IPv6 network of 64 bits, as `50/s burst 1000`, `20/min` or `off`"},
	{key: "limits.inbox_host_rate", at: func(c *config) pflag.Value { return (*rate)(&c.Engine.Limits.InboxHostRate) },
		help: "inbox requests taken from one host"},
	{key: "limits.inbox_actor_rate", at: func(c *config) pflag.Value { return (*rate)(&c.Engine.Limits.InboxActorRate) },
		help: "inbox requests taken from one actor"},
	{key: "limits.key_fetch_rate", at: func(c *config) pflag.Value { return (*rate)(&c.Engine.Limits.KeyFetchRate) },
		help: "actors fetched for their key, per registrable domain"},
	{key: "retention.remote_days", at: func(c *config) pflag.Value { return (*whole)(&c.Engine.Retention.RemoteDays) },
		help: "days after which what others sent is pruned, unless the user has to do with it: 0 to 36500; 0: never"},
	{key: "pages", at: func(c *config) pflag.Value { return (*truth)(&c.Engine.Pages) },
		help: "show people who follow a link a small page: `/@alice` and the public posts there; secure mode shows none"},
	{key: "drain_timeout", at: func(c *config) pflag.Value { return (*span)(&c.Engine.DrainTimeout) }, flag: "drain", arg: "DURATION", command: "serve",
		help: "how long what is under way may take at the end: 0s to 10m"},
	{key: "log.level", at: func(c *config) pflag.Value { return (*level)(&c.LogLevel) }, flag: "log-level", arg: "LEVEL",
		help: "`debug`, `info`, `warn` or `error`"},
	{key: "log.format", at: func(c *config) pflag.Value { return (*format)(&c.LogFormat) }, flag: "log-format", arg: "FORMAT",
		help: "`text`, `json`, or `auto`: text on a terminal, else JSON"},
}

// inboxRatesOff is an environment variable that is not a setting. The value off removes the rate
// limits of the inbox, for measurements.
const inboxRatesOff = "LIGHTWEB_LIMITS_INBOX_RATE"

// addSettingFlags adds the flags of settings that one command has. If command is empty, it adds
// the flags of settings that all commands have.
func addSettingFlags(f *pflag.FlagSet, command string) {
	for _, s := range settings {
		if s.flag != "" && s.command == command {
			f.Var(newFlagText(new(string), s.arg), s.flag, strings.ReplaceAll(flagHelp(s), "`", ""))
		}
	}
}

func flagHelp(s setting) string {
	if s.flag == "domain" {
		return "domain in every id: short for public_url https://HOST"
	}
	help, _, _ := strings.Cut(s.help, ". ") // only the documentation has the rest
	return help
}

// domainURL returns the public_url that a value of --domain stands for.
func domainURL(domain string) (string, error) {
	if domain == "" || strings.ContainsAny(domain, "/@ ") {
		return "", fmt.Errorf("%.60q is not a domain such as example.org", domain)
	}
	return "https://" + domain, nil
}

// flagText is a flag whose value is stored as text and parsed later. The field arg is the name of
// the value in help.
type flagText struct {
	value *string
	arg   string
}

func newFlagText(value *string, arg string) *flagText { return &flagText{value, arg} }

func (f *flagText) Set(s string) error { *f.value = s; return nil }
func (f *flagText) String() string {
	if f.value == nil { // pflag calls this on a zero flagText to learn the default
		return ""
	}
	return *f.value
}
func (f *flagText) Type() string { return f.arg }
