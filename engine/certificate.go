package engine

import (
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// rereadEvery is the time after which the files of the certificate are read again.
const rereadEvery = time.Minute

// certificate is the certificate of the public listener. Its files are read again while the engine
// serves, because other programs renew them. While they cannot be used, the certificate that was
// read before stays in use.
type certificate struct {
	cert, key string // the files; empty without TLS
	log       *slog.Logger
	now       func() time.Time

	mu     sync.Mutex
	read   time.Time // when the files were last read
	pair   *tls.Certificate
	broken string // why the files could not be used then
}

// current returns the certificate. It reads the files if it has not done so within rereadEvery.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.pair != nil && now.Sub(c.read) < rereadEvery {
		return c.pair, nil
	}
	c.read = now
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		if err.Error() != c.broken {
			c.broken = err.Error()
			c.log.Error("certificate not read", "err", err, "hint", "tls.cert and tls.key: the certificate that was read before stays in use")
		}
		if c.pair == nil {
			return nil, err
		}
		return c.pair, nil
	}
	if c.pair != nil && !c.pair.Leaf.Equal(pair.Leaf) {
		c.log.Info("certificate renewed", "not_after", pair.Leaf.NotAfter)
	}
	c.pair, c.broken = &pair, ""
	return c.pair, nil
}

// newNotAfterGauge returns a gauge of the time at which the certificate in use ends.
func newNotAfterGauge(c *certificate) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "lightweb_tls_not_after_seconds",
		Help: "When the certificate of the public listener ends, in seconds since 1970; 0 without one.",
	}, func() float64 {
		if c.cert == "" {
			return 0
		}
		pair, err := c.current(nil)
		if err != nil {
			return 0
		}
		return float64(pair.Leaf.NotAfter.Unix())
	})
}
