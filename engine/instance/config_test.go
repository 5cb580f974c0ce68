package instance

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestDefaultsAreValid(t *testing.T) {
	if err := DefaultConfig("/var/lib/lightweb").Validate(); err != nil {
		t.Errorf("Validate = %v, want nil", err)
	}
}

func TestValidateNamesTheSettingThatCannotBeUsed(t *testing.T) {
	tests := []struct {
		name string
		set  func(*Config)
		want string // the key that the error names; empty if the configuration is valid
	}{
		{"https origin", func(c *Config) { c.PublicURL = "https://example.org" }, ""},
		{"https origin with a port", func(c *Config) { c.PublicURL = "https://example.org:8443" }, ""},
		{"http on IPv6 loopback", func(c *Config) { c.PublicURL = "http://[::1]:8080" }, ""},
		{"http on localhost", func(c *Config) { c.PublicURL = "http://localhost:8080" }, ""},
		{"http on a public host", func(c *Config) { c.PublicURL = "http://example.org" }, "public_url"},
		{"http on a public host, allowed", func(c *Config) { c.PublicURL = "http://example.org"; c.Federation.AllowHTTP = true }, ""},
		{"origin with a path", func(c *Config) { c.PublicURL = "https://example.org/lw" }, "public_url"},
		{"origin with a slash", func(c *Config) { c.PublicURL = "https://example.org/" }, "public_url"},
		{"origin with an empty query", func(c *Config) { c.PublicURL = "https://example.org?" }, "public_url"},
		{"origin with an empty fragment", func(c *Config) { c.PublicURL = "https://example.org#" }, "public_url"},
		{"origin in capitals", func(c *Config) { c.PublicURL = "https://Example.org" }, "public_url"},
		{"origin with the default port", func(c *Config) { c.PublicURL = "https://example.org:443" }, "public_url"},
		{"origin with user info", func(c *Config) { c.PublicURL = "https://a@example.org" }, "public_url"},
		{"bare domain", func(c *Config) { c.PublicURL = "example.org" }, "public_url"},
		{"listen on all addresses", func(c *Config) { c.Listen = ":8080" }, ""},
		{"listen without a port", func(c *Config) { c.Listen = "127.0.0.1" }, "listen"},
		{"listen beyond the last port", func(c *Config) { c.Listen = "127.0.0.1:70000" }, "listen"},
		{"both listeners on one address", func(c *Config) { c.AdminListen = c.Listen }, "admin_listen"},
		{"both listeners on any free port", func(c *Config) { c.Listen, c.AdminListen = "127.0.0.1:0", "127.0.0.1:0" }, ""},
		{"relative data_dir", func(c *Config) { c.DataDir = "data" }, "data_dir"},
		{"relative users_dir", func(c *Config) { c.UsersDir = "" }, "users_dir"},
		{"database URL", func(c *Config) { c.Database.URL = "postgres://lightweb@db:5432" }, ""},
		{"database key words", func(c *Config) { c.Database.URL = "host=db password=hunter2" }, "database.url"},
		{"database URL that does not parse", func(c *Config) { c.Database.URL = "postgres://a:hunter2%zz@db" }, "database.url"},
		{"too few connections", func(c *Config) { c.Database.MaxConnections = 3 }, "database.max_connections"},
		{"certificate without key", func(c *Config) { c.TLS.Cert = "/c.pem" }, "tls.key"},
		{"key without certificate", func(c *Config) { c.TLS.Key = "/k.pem" }, "tls.cert"},
		{"unknown mode", func(c *Config) { c.Federation.Mode = "closed" }, "federation.mode"},
		{"paused", func(c *Config) { c.Federation.Mode = "paused" }, ""},
		{"unknown dialect", func(c *Config) { c.Federation.SignatureFirst = "" }, "federation.signature_first"},
		{"page of 100", func(c *Config) { c.Federation.PageSize = 100 }, ""},
		{"page of 101", func(c *Config) { c.Federation.PageSize = 101 }, "federation.page_size"},
		{"page of 0", func(c *Config) { c.Federation.PageSize = 0 }, "federation.page_size"},
		{"actors believed for a second", func(c *Config) { c.Cache.ActorTTL = time.Second }, "cache.actor_ttl"},
		{"no delivery", func(c *Config) { c.Delivery.Concurrency = 0 }, "delivery.concurrency"},
		{"more to one host than in all", func(c *Config) { c.Delivery.Concurrency = 2 }, "delivery.host_concurrency"},
		{"deliveries forgotten at once", func(c *Config) { c.Delivery.Retention = time.Hour }, "delivery.retention"},
		{"attempt without time", func(c *Config) { c.Delivery.Timeout = 0 }, "delivery.timeout"},
		{"bodies of one byte", func(c *Config) { c.Limits.Body = 1 }, "limits.body"},
		{"messages that nobody decodes", func(c *Config) { c.Limits.MLSBody = 24<<20 + 1 }, "limits.mls_body"},
		{"pages that use the API", func(c *Config) {
			c.API.CORSOrigins = []string{"https://app.example.org", "http://localhost:3000", "tauri://localhost"}
		}, ""},
		{"CLI-08 any page", func(c *Config) { c.API.CORSOrigins = []string{"*"} }, "api.cors_origins"},
		{"CLI-08 a page of nowhere", func(c *Config) { c.API.CORSOrigins = []string{"null"} }, "api.cors_origins"},
		{"a page", func(c *Config) { c.API.CORSOrigins = []string{"https://app.example.org/"} }, "api.cors_origins"},
		{"an origin in capitals", func(c *Config) { c.API.CORSOrigins = []string{"https://App.example.org"} }, "api.cors_origins"},
		{"rate off", func(c *Config) { c.Limits.InboxHostRate = Rate{} }, ""},
		{"rate without burst", func(c *Config) { c.Limits.InboxActorRate.Burst = 0 }, "limits.inbox_actor_rate"},
		{"negative rate", func(c *Config) { c.Limits.KeyFetchRate.Events = -1 }, "limits.key_fetch_rate"},
		{"stop at once", func(c *Config) { c.DrainTimeout = 0 }, ""},
		{"drain for an hour", func(c *Config) { c.DrainTimeout = time.Hour }, "drain_timeout"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultConfig("/var/lib/lightweb")
			tt.set(&c)
			err := c.Validate()
			var s *SettingError
			if errors.As(err, &s); err != nil && (s == nil || s.Key != tt.want) || err == nil && tt.want != "" {
				t.Fatalf("Validate = %v, want an error about %q", err, tt.want)
			}
			if err == nil {
				return
			}
			if fault.KindOf(err) != fault.Config || fault.Hint(err) == "" || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v: kind %d, hint %q, want one line of kind Config with a hint", err, fault.KindOf(err), fault.Hint(err))
			}
			if strings.Contains(err.Error()+fault.Hint(err), "hunter2") {
				t.Errorf("%v shows the password", err)
			}
		})
	}
}
