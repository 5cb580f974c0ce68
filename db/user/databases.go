package user

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lightweb/lightweb/db/pool"
	"github.com/lightweb/lightweb/db/schema"
)

// Databases are the users' databases of an instance.
type Databases struct {
	schema      *schema.Databases
	pool        *pool.Pool
	types       Types
	subscribers *subscribers             // notified of commits
	late        *lateCommits             // see tellLater; shared by all views
	class       pool.Class               // the purpose of these Databases
	strangers   *pool.Strangers          // nil unless the class is pool.Stranger
	limit       *atomic.Int64            // see LimitTransactions; shared by all views
	took        *prometheus.HistogramVec // times of transactions
}

// New returns the users' databases of an instance. The parameter connections is the pool of
// connections to them.
func New(databases *schema.Databases, connections *pool.Pool, types Types, log *slog.Logger, reg prometheus.Registerer) *Databases {
	return &Databases{schema: databases, pool: connections, types: types, subscribers: &subscribers{log: log}, late: newLateCommits(), limit: new(atomic.Int64), took: newTransactionMetric(reg)}
}

func newTransactionMetric(reg prometheus.Registerer) *prometheus.HistogramVec {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "lightweb_db_transaction_seconds",
		Help:    "Time of a transaction on a user's database, with the wait for a connection.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
	}, []string{"mode"})
	reg.MustRegister(took)
	return took
}

// LimitTransactions limits the time of each transaction whose context has no deadline. This time
// includes the wait for a connection and all reruns. The process that serves sets a limit, so
// that one database that does not answer does not stop loops that serve all users. Without a
// call, as in commands, there is no limit.
func (d *Databases) LimitTransactions(limit time.Duration) { d.limit.Store(int64(limit)) }

// limited returns ctx with the limit of LimitTransactions, unless ctx has a deadline.
func (d *Databases) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := time.Duration(d.limit.Load())
	if _, has := ctx.Deadline(); has || limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

// As returns d with another class, which decides how many connections its transactions may use.
// The Databases that New returns have the class pool.Work.
func (d *Databases) As(class pool.Class) *Databases {
	view := *d
	view.class = class
	return &view
}

// ForStrangers returns d with the class pool.Stranger. To open a connection costs as much as
// fifteen writes, so strangers may not always open one.
func (d *Databases) ForStrangers(strangers pool.Strangers) *Databases {
	view := d.As(pool.Stranger)
	view.strangers = &strangers
	return view
}
