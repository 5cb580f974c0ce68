package cmd

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/instance"
)

// load returns the configuration made from a file, an environment and flags.
func load(t *testing.T, file string, env []string, flags ...string) (*config, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "lightweb.toml")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	a := newApp(append([]string{"HOME=/home/nobody", "LIGHTWEB_CONFIG=" + name}, env...), nil, nil, nil)
	serve := newServe(a)
	addSettingFlags(serve.Flags(), "")
	if err := serve.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	a.command = serve
	return a.config()
}

func TestEachLayerOverridesTheNext(t *testing.T) {
	const file = "listen = 'file:1'\nadmin_listen = 'file:2'\ndrain_timeout = '1s'\n"
	env := []string{"LIGHTWEB_LISTEN=env:1", "LIGHTWEB_ADMIN_LISTEN=env:2"}
	c, err := load(t, file, env, "--listen", "flag:1")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{c.Engine.Listen, c.Engine.AdminListen, c.Engine.DrainTimeout.String(), c.Engine.Federation.Mode}
	if want := []string{"flag:1", "env:2", "1s", "open"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for key, want := range map[string]string{"listen": "flag --listen", "admin_listen": "environment LIGHTWEB_ADMIN_LISTEN", "drain_timeout": c.file + " line 3", "federation.mode": "default"} {
		if got := c.originOf(key); string(got) != want {
			t.Errorf("%s comes from %q, want %q", key, got, want)
		}
	}
}

func TestEverySettingCanBeWrittenInTheFile(t *testing.T) {
	c, err := load(t, `
public_url = "https://example.org"
listen = ":443"
data_dir = "/srv/lightweb"
trusted_proxies = ["10.0.0.0/8", "::1"]

[database]
url = "postgres://lightweb@db"
max_connections = 16
[redis]
url = "redis://cache:6379"
events_url = "redis://events:26379?master_name=mymaster"
[events]
maxlen = 2000
memory = "1GiB"
[tls]
cert = "/etc/c.pem"
key = "/etc/k.pem"
[federation]
allow_http = true
mode = "allowlist"
secure_mode = true
[api]
cors_origins = ["https://app.example.org", "http://localhost:3000"]
[cache]
actor_ttl = "7d"
[limits]
body = 2048
inbox_host_rate = "off"
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := c.Engine
	if e.PublicURL != "https://example.org" || e.UsersDir != "/srv/lightweb/users" || e.Database.URL.Reveal() != "postgres://lightweb@db" ||
		e.Database.MaxConnections != 16 || e.Redis.URL.Reveal() != "redis://cache:6379" || e.Events.MaxLen != 2000 || e.Events.Memory != 1<<30 || !e.Federation.AllowHTTP || !e.Federation.SecureMode || len(e.API.CORSOrigins) != 2 || e.Cache.ActorTTL != 168*time.Hour || e.Limits.Body != 2048 || e.Limits.InboxHostRate != (instance.Rate{}) {
		t.Errorf("got %+v", e)
	}
	if want := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}; !slices.Equal(e.TrustedProxies, want) {
		t.Errorf("trusted_proxies = %v, want %v", e.TrustedProxies, want)
	}
}

func TestMistakesInTheConfigurationAreNamed(t *testing.T) {
	tests := []struct {
		name, file string
		env, flags []string
		want, hint string
	}{
		{"unknown key", "lissen = ':1'", nil, nil, "unknown setting lissen (FILE line 1)", "did you mean listen?"},
		{"unknown key in a table", "\n[federation]\npagesize = 3", nil, nil, "unknown setting federation.pagesize (FILE line 3)", "did you mean federation.page_size?"},
		{"key outside its table", "page_size = 3", nil, nil, "unknown setting page_size (FILE line 1)", "did you mean federation.page_size?"},
		{"setting of a later version", "[redis]\nurls = 'redis://r'", nil, nil, "unknown setting redis.urls", "did you mean redis.url?"},
		{"no Redis", "[redis]\nurl = 'http://:secret@r'", nil, nil, "redis.url: the address of Redis is not one of redis://, rediss:// or unix://", "unix:///run/redis.sock"},
		{"events elsewhere and no cache", "[redis]\nevents_url = 'redis://r'", nil, nil, "redis.events_url: it is set, and redis.url is not", "set redis.url too"},
		{"a value for a table", "database = 'postgres://db'", nil, nil, "unknown setting database", "lightweb config show lists"},
		{"no TOML", "listen = \n", nil, nil, "FILE line 1:", ""},
		{"a number for a text", "listen = 1.5", nil, nil, "listen: a text, a whole number, true, false or a list of texts is taken (FILE line 1)", "address of the public listener"},
		{"a list of numbers", "trusted_proxies = [1]", nil, nil, "trusted_proxies: item 1 of the list is not a text", ""},
		{"no duration", "drain_timeout = 30", nil, nil, `drain_timeout: "30" is not a duration such as 30s, 12h or 7d (FILE line 1)`, ""},
		{"out of bounds", "[federation]\npage_size = 500", nil, nil, "federation.page_size: 500 is out of bounds (FILE line 2)", "from 1 to 100"},
		{"no network", "", []string{"LIGHTWEB_TRUSTED_PROXIES=10.0.0.0/33"}, nil, `trusted_proxies: "10.0.0.0/33" is not a network such as 10.0.0.0/8 (environment LIGHTWEB_TRUSTED_PROXIES)`, ""},
		{"bits beyond the network", "", []string{"LIGHTWEB_TRUSTED_PROXIES=10.0.0.1/8"}, nil, "write 10.0.0.0/8", ""},
		{"no truth", "", []string{"LIGHTWEB_FEDERATION_ALLOW_HTTP=yes"}, nil, `federation.allow_http: "yes" is neither true nor false`, ""},
		{"no size", "", []string{"LIGHTWEB_LIMITS_BODY=1MB"}, nil, `limits.body: "1MB" is not a size`, ""},
		{"no rate", "", []string{"LIGHTWEB_LIMITS_KEY_FETCH_RATE=lots"}, nil, `limits.key_fetch_rate: "lots" is not a rate`, ""},
		{"no level", "", nil, []string{"--log-level=loud"}, `log.level: "loud" is not debug, info, warn or error (flag --log-level)`, ""},
		{"no domain", "", nil, []string{"--domain=https://example.org"}, `public_url: "https://example.org" is not a domain such as example.org (flag --domain)`, ""},
		{"unknown variable", "", []string{"LIGHTWEB_LISEN=:1"}, nil, "unknown environment variable LIGHTWEB_LISEN", "did you mean LIGHTWEB_LISTEN?"},
		{"file variant of what is no secret", "", []string{"LIGHTWEB_LISTEN_FILE=/x"}, nil, "unknown environment variable LIGHTWEB_LISTEN_FILE", ""},
		{"secret twice", "", []string{"LIGHTWEB_DATABASE_URL=postgres://db", "LIGHTWEB_DATABASE_URL_FILE=/x"}, nil, "both LIGHTWEB_DATABASE_URL and LIGHTWEB_DATABASE_URL_FILE are set", "unset one"},
		{"secret file away", "", []string{"LIGHTWEB_DATABASE_URL_FILE=/nowhere/x"}, nil, `LIGHTWEB_DATABASE_URL_FILE: cannot read "/nowhere/x": no such file or directory`, ""},
		{"file away", "", []string{"LIGHTWEB_CONFIG=/nowhere/x.toml"}, nil, "cannot read the configuration file /nowhere/x.toml: no such file or directory", "check --config"},
		{"inbox rates neither on nor off", "", []string{"LIGHTWEB_LIMITS_INBOX_RATE=10/s"}, nil, `LIGHTWEB_LIMITS_INBOX_RATE: "10/s" is not off`, "LIGHTWEB_LIMITS_INBOX_HOST_RATE"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.file, tt.env, tt.flags...)
			if fault.KindOf(err) != fault.Config {
				t.Fatalf("got %v, want fault.Config", err)
			}
			for part := range strings.SplitSeq(tt.want, "FILE") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %q, want %q", err, tt.want)
				}
			}
			if strings.Contains(tt.want, "FILE line") && !strings.Contains(err.Error(), "lightweb.toml line") {
				t.Errorf("got %q, want the file's name and line", err)
			}
			if !strings.Contains(fault.Hint(err), tt.hint) {
				t.Errorf("hint %q, want %q", fault.Hint(err), tt.hint)
			}
		})
	}
}

func TestVariablesOfOthersAreLeftAlone(t *testing.T) {
	_, err := load(t, "", []string{"LIGHTWEB_PG_BIN=/usr/bin", "LIGHTWEB_TEST_ALL=1", "LIGHTWEB_VECTORS=/v", "LIGHTWEB_FEDIFY_DIR=/f",
		"LIGHTWEB_SERVICE_HOST=10.0.0.1", "LIGHTWEB_PORT=tcp://10.0.0.1:80", "LIGHTWEB_PORT_80_TCP=tcp://10.0.0.1:80", "LIGHTWEBX=1",
		"LIGHTWEB_REDIS_SERVICE_HOST=10.0.0.2", "LIGHTWEB_REDIS_SERVICE_PORT=6379", "LIGHTWEB_REDIS_SERVICE_PORT_REDIS=6379", "LIGHTWEB_REDIS_PORT=tcp://10.0.0.2:6379",
		"LIGHTWEB_REDIS_PORT_6379_TCP=tcp://10.0.0.2:6379", "LIGHTWEB_REDIS_PORT_6379_TCP_ADDR=10.0.0.2", "LIGHTWEB_REDIS_PORT_6379_TCP_PROTO=tcp"})
	if err != nil {
		t.Error(err)
	}
}

func TestSecretsComeFromFilesAndAreShownNowhere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(name, []byte("postgres://a:hunter2@db\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, "", []string{"LIGHTWEB_DATABASE_URL=", "LIGHTWEB_DATABASE_URL_FILE=" + name})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Engine.Database.URL.Reveal(); got != "postgres://a:hunter2@db" {
		t.Errorf("database.url = %q, want the file's line", got)
	}
	doc, err := json.Marshal(c.Engine)
	if shown := fmt.Sprintf("%v %+v %s", c, c.Engine, doc); err != nil || strings.Contains(shown, "hunter2") {
		t.Errorf("%s, %v shows the secret", shown, err)
	}
	if _, out, _ := execute([]string{"LIGHTWEB_DATABASE_URL_FILE=" + name}, "config", "show"); !strings.Contains(out, "database.url: REDACTED\n") {
		t.Errorf("%s, want database.url: REDACTED", out)
	}
}

func TestInboxRatesCanBeTakenAway(t *testing.T) {
	c, err := load(t, "[limits]\ninbox_host_rate = '1/s'", []string{"LIGHTWEB_LIMITS_INBOX_RATE=off"})
	if err != nil {
		t.Fatal(err)
	}
	l := c.Engine.Limits
	if l.InboxAddressRate != (instance.Rate{}) || l.InboxHostRate != (instance.Rate{}) || l.InboxActorRate != (instance.Rate{}) || l.KeyFetchRate == (instance.Rate{}) {
		t.Errorf("limits %+v, want the inbox rates off and the other as it was", l)
	}
}

func TestEverySettingIsWholeAndReadsWhatItWrites(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range settings {
		c, again := defaultConfig("/var/lib/lightweb"), defaultConfig("/elsewhere")
		if seen[s.key] || seen[s.env()] || s.help == "" || s.flag != "" && s.arg == "" {
			t.Errorf("%s: a key, variable or flag twice, or a part missing", s.key)
		}
		seen[s.key], seen[s.env()] = true, true
		written := s.at(c).String()
		if err := s.at(again).Set(written); err != nil || s.at(again).String() != written {
			t.Errorf("%s writes %q and reads %q, %v", s.key, written, s.at(again), err)
		}
		if notASetting(s.env()) || notASetting(s.env()+"_FILE") {
			t.Errorf("%s is taken for the variable of others", s.env())
		}
	}
}

func TestTheDataFolderFollowsTheUser(t *testing.T) {
	if os.Geteuid() == 0 {
		d, err := (&configReader{env: []string{"XDG_DATA_HOME=/x", "HOME=/h"}}).defaultDataDir()
		if err != nil || d != "/var/lib/lightweb" {
			t.Errorf("as root: %q, %v, want /var/lib/lightweb", d, err)
		}
		return
	}
	for _, tt := range []struct {
		name string
		env  []string
		want string
	}{
		{"XDG", []string{"XDG_DATA_HOME=/x", "HOME=/h"}, "/x/lightweb"},
		{"a relative XDG path is ignored, as it must be", []string{"XDG_DATA_HOME=x", "HOME=/h"}, "/h/.local/share/lightweb"},
		{"no home", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := (&configReader{env: tt.env}).defaultDataDir()
			if d != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("defaultDataDir = %q, %v, want %q", d, err, tt.want)
			}
		})
	}
}

func TestSizesAreTakenUpToTheirBounds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		bytes size
		shown string
	}{
		"6442450944": {6 << 30, "6GiB"}, "1TiB": {1 << 40, "1TiB"}, "1099511627776": {1 << 40, "1TiB"},
		"1048577": {1<<20 + 1, "1048577"}, "16 MiB": {16 << 20, "16MiB"}, "0": {0, "0"},
	} {
		var v size
		if err := v.Set(text); err != nil || v != want.bytes || v.String() != want.shown {
			t.Errorf("Set(%q) = %d, shown as %s, %v, want %d and %s", text, v, &v, err, want.bytes, want.shown)
		}
	}
	for _, text := range []string{"8388608TiB", "9223372036854775808", "18446744073709551616", "-1", "-0", "-1KiB", "1PiB", "TiB", ""} {
		var v size
		if err := v.Set(text); err == nil {
			t.Errorf("Set(%q) = %d, want an error", text, v)
		}
	}
	if c, err := load(t, "[events]\nmemory = '1TiB'", nil); err != nil || c.Engine.Events.Memory != 1<<40 {
		t.Errorf("events.memory = 1TiB: %v", err)
	}
}
