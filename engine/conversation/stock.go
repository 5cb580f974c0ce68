package conversation

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/vocab"
)

// CountEvery is the time between two calls of LookAround.
const CountEvery = 5 * time.Minute

// countTime is the time limit for counting one user's stock.
const countTime = 10 * time.Second

// Owners lists the users of this server.
type Owners interface {
	ListWithDatabase(ctx context.Context, named []vocab.Username) ([]instance.User, error)
}

// StockDeps are the dependencies of a Stock.
type StockDeps struct {
	Store   Store
	Owners  Owners
	ID      func(vocab.Username) vocab.ID
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Now     func() time.Time
}

// Stock is a metrics collector for the key packages and Welcomes that wait in the users'
// databases. It shows the last count, so a scrape of the metrics opens no database.
type Stock struct {
	StockDeps

	mu      sync.Mutex
	of      map[vocab.Username]user.MLSStock // the last counts of the users that could be read
	changed map[vocab.Username]bool          // users whose databases changed since the last count
	known   bool                             // false before the first count, and if the last count failed for all users
}

// NewStock registers and returns a Stock that shows nothing until the first LookAround.
func NewStock(d StockDeps) *Stock {
	s := &Stock{StockDeps: d, of: map[vocab.Username]user.MLSStock{}, changed: map[vocab.Username]bool{}}
	d.Metrics.MustRegister(s)
	return s
}

// Committed remembers that a user's database has changed.
func (s *Stock) Committed(_ context.Context, c user.Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed[c.User] = true
}

// LookAround counts the stock of one user after another. It skips a user whose last count was zero
// and whose database this process has not changed since.
func (s *Stock) LookAround(ctx context.Context) {
	users, err := s.Owners.ListWithDatabase(ctx, nil)
	if err != nil {
		if s.take(nil, false); ctx.Err() == nil {
			s.Log.WarnContext(ctx, "key packages and welcomes not counted", "err", err)
		}
		return
	}
	of, failed := map[vocab.Username]user.MLSStock{}, 0
	for _, u := range users {
		if s.isEmpty(u.Name) {
			of[u.Name] = user.MLSStock{}
			continue
		}
		counted, err := s.countOf(ctx, u.Name)
		if ctx.Err() != nil {
			return // the engine is stopping
		}
		if err != nil {
			if failed++; failed == 1 {
				s.Log.WarnContext(ctx, "key packages and welcomes of a user not counted", "user", u.Name, "err", err)
			}
			continue
		}
		of[u.Name] = counted
	}
	s.take(of, len(of) > 0 || failed == 0)
}

// isEmpty reports whether a user's last count was zero and its database has not changed since.
// It clears the user's mark in changed.
func (s *Stock) isEmpty(u vocab.Username) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, counted := s.of[u]
	is := counted && before == user.MLSStock{} && !s.changed[u]
	delete(s.changed, u)
	return is
}

func (s *Stock) countOf(ctx context.Context, u vocab.Username) (n user.MLSStock, err error) {
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	err = s.Store.Read(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		n, err = tx.KeyPackages.CountStock(ctx, s.ID(u), s.Now())
		return err
	})
	return n, err
}

func (s *Stock) take(of map[vocab.Username]user.MLSStock, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of, s.known = of, known
}

var (
	packagesDesc = prometheus.NewDesc("lightweb_mls_keypackages_available", "Key packages for one claim each, as counted within the last minutes, of users whose databases can be read.", nil, nil)
	welcomesDesc = prometheus.NewDesc("lightweb_mls_welcomes_pending", "Welcomes to users that no device has confirmed, as counted within the last minutes, of users whose databases can be read.", nil, nil)
)

// Describe implements prometheus.Collector.
func (s *Stock) Describe(to chan<- *prometheus.Desc) { to <- packagesDesc; to <- welcomesDesc }

// Collect implements prometheus.Collector. It sends nothing before the first count, and if the
// last count failed for all users.
func (s *Stock) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.known {
		return
	}
	var all user.MLSStock
	for _, n := range s.of {
		all.KeyPackages += n.KeyPackages
		all.Welcomes += n.Welcomes
	}
	to <- prometheus.MustNewConstMetric(packagesDesc, prometheus.GaugeValue, float64(all.KeyPackages))
	to <- prometheus.MustNewConstMetric(welcomesDesc, prometheus.GaugeValue, float64(all.Welcomes))
}
