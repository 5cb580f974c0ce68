package policy

import "time"

// Payer is a kind of party that pays for work, which means that the work uses up that party's
// share of a budget. The party that caused the work pays, as far as that party is verified when
// the work is counted.
type Payer string

// The kinds of payers. Before a signature is verified only the client address is known;
// afterwards the signer's domain pays.
const (
	Address Payer = "client address"     // for IPv6 its /64 network; in budgets that payers share, wider networks around it pay, too
	Domain  Payer = "registrable domain" // of the actor that signed
	Sender  Payer = "actor"              // the actor that signed
	User    Payer = "user"               // of this server
	Token   Payer = "token"              // of a user's client
	Request Payer = "each request"       // each request has a limit of its own, which it shares with no other request
)

// Budget is one row of the table of budgets. It limits work or storage that others can cause on
// this server, and says which party pays. Exactly one of its fields Rate, Setting, Pool, Each and
// Hourly is set; Daily is set together with Hourly. The table in docs/operations.md is generated
// from the rows, and a test uses up the share of one payer in each row.
type Budget struct {
	Bounds string // the things that are counted
	Payer  Payer
	Beyond string // the response, or the fate of the work, when the share is used up

	Rate    Rate   // the rate of each payer
	Setting string // the name of the setting with the rate of each payer
	Pool    int64  // the size of a Pool that all payers share
	Bytes   bool   // bytes are counted
	Each    string // the limit for a single thing, in words

	Hourly, Daily int // the limits of each payer, counted in the user's database and not in memory

	Per  string // each thing of this kind has a pool or a rate of its own, which the payers share
	Note string // for operators: parts that are reserved, or things that do not count
}

// budgets is the table.
var budgets []*Budget

// newBudget adds a row to the table.
func newBudget(b Budget) *Budget {
	budgets = append(budgets, &b)
	return &b
}

// Budgets returns the rows of the table of budgets, in the order of that table.
func Budgets() []*Budget { return budgets }

// remembered is the number of keys that a limiter of a budget remembers.
const remembered = 50_000

// Limiter returns a limiter with the rate of the row for each payer.
func (b *Budget) Limiter(now func() time.Time) *Limiter { return b.LimiterAt(b.Rate, now) }

// LimiterAt is Limiter for a row whose rate comes from a setting.
func (b *Budget) LimiterAt(r Rate, now func() time.Time) *Limiter {
	return NewLimiter(r, now, remembered)
}

// SharedAt returns a limiter with the rate r, which the payers share. It is for a row whose rate
// comes from a setting.
func (b *Budget) SharedAt(r Rate, now func() time.Time) *SharedLimiter {
	return newSharedLimiter(r, now, remembered)
}

// Shared is SharedAt for a row with a rate of its own.
func (b *Budget) Shared(now func() time.Time) *SharedLimiter { return b.SharedAt(b.Rate, now) }

// NewPool returns a pool of the size in the row.
func (b *Budget) NewPool() *Pool { return b.PoolOf(b.Pool) }

// PoolOf returns a pool of another size than that in the row.
func (b *Budget) PoolOf(size int64) *Pool { return NewPool(size) }

// Daily returns the rate of n a day with a burst of n.
func Daily(n int) Rate {
	return Rate{PerSecond: float64(n) / (24 * time.Hour).Seconds(), Burst: n}
}
