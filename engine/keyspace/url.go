package keyspace

import (
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lightweb/lightweb/engine/fault"
)

// CheckURL returns nil if Open accepts the URL. The forms are redis://user:password@host:6379/0,
// rediss:// with TLS, and unix:// with the path of a socket. The form for Sentinel is
// redis://host:26379?master_name=mymaster&addr=host2:26379. The form for Cluster is
// redis://host:7000?cluster=true, with any number of addr=host:port.
func CheckURL(address string) error {
	_, err := parse(address)
	return err
}

// parse parses the URL of a Redis. Its errors do not contain the URL, because the URL contains
// the password.
func parse(address string) (*redis.UniversalOptions, error) {
	wrong := func(problem string) error {
		return fault.New(fault.Config, "the address of Redis "+problem).
			WithHint("write redis://user:password@host:6379, unix:///run/redis.sock, redis://host:26379?master_name=mymaster for Sentinel or redis://host:7000?cluster=true")
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, wrong("is not a URL")
	}
	q := u.Query()
	master, others, cluster := q.Get("master_name"), q["addr"], q.Get("cluster") == "true"
	for key := range q {
		if key != "master_name" && key != "addr" && key != "cluster" {
			return nil, wrong("has a parameter that is not known: " + key)
		}
	}
	u.RawQuery = ""
	single, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, wrong("is not one of redis://, rediss:// or unix://")
	}
	switch {
	case single.Network == "unix" && (master != "" || len(others) > 0 || cluster):
		return nil, wrong("names a socket, and others beside it")
	case cluster && (master != "" || single.DB != 0):
		return nil, wrong("is that of a cluster, which has no master name and no numbered databases")
	case len(others) > 0 && master == "" && !cluster:
		return nil, wrong("names several servers, and not what they are")
	}
	o := &redis.UniversalOptions{
		Addrs: append([]string{single.Addr}, others...), MasterName: master, IsClusterMode: cluster,
		DB: single.DB, Username: single.Username, Password: single.Password, TLSConfig: single.TLSConfig,
		ContextTimeoutEnabled: true, DialTimeout: callLimit, ReadTimeout: callLimit, WriteTimeout: callLimit, PoolTimeout: callLimit,
		DialerRetries: 1, MaxRetries: -1, MaxRedirects: 3, ConnMaxIdleTime: 5 * time.Minute, DisableIdentity: true,
		// With protocol 3 the client would search each reply for notifications, and it subscribes
		// to none.
		Protocol:                 2,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if strings.HasPrefix(single.Addr, "/") != (single.Network == "unix") {
		return nil, wrong("is not complete")
	}
	return o, nil
}
