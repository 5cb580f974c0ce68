package policy

import (
	"fmt"
	"strings"
	"time"
)

// Payer names the party whose share of a budget a piece of work uses up: the party that caused the
// work, as far as that is proven when it is counted.
type Payer string

// Payers. Before a signature is verified only the client address is known; afterwards the signer's
// domain pays.
const (
	Address Payer = "client address"     // of IPv6 the network of 64 bits; what is shared its networks pay, too
	Domain  Payer = "registrable domain" // of the actor who signed
	Sender  Payer = "actor"              // who signed
	User    Payer = "user"               // of this server
	Token   Payer = "token"              // of a user's program
	Request Payer = "each request"       // bounded by itself; nothing is shared
)

// Budget is one row of the table of budgets: what others can make this server do or keep, who pays
// for it, and how far. It has exactly one of Rate, Setting, Pool, Hourly (with Daily) and Each.
// docs/operations.md is written from the rows, and a test spends the share of one payer of each.
type Budget struct {
	Bounds string // what is counted
	Payer  Payer
	Beyond string // what the payer is answered, or what becomes of the work

	Rate    Rate   // of each payer
	Setting string // names the setting that says the rate of each payer
	Pool    int64  // shared by all payers; see Pool
	Bytes   bool   // what is counted are bytes
	Each    string // bound of one thing

	Hourly, Daily int // of each payer, counted in the user's database and not in memory

	Per  string // the pool or the rate is one of many: each such thing has its own, which the payers share
	Note string // for operators: what is kept back, or what does not count
}

// budgets is the table.
var budgets []*Budget

// newBudget adds a row to the table.
func newBudget(b Budget) *Budget {
	budgets = append(budgets, &b)
	return &b
}

// Budgets returns the rows of the table in their order.
func Budgets() []*Budget { return budgets }

// remembered bounds how many payers a budget tells apart.
const remembered = 50_000

// Limiter returns a limiter with the rate of the row for each payer.
func (b *Budget) Limiter(now func() time.Time) *Limiter { return b.LimiterAt(b.Rate, now) }

// LimiterAt is Limiter for a row whose rate a setting says.
func (b *Budget) LimiterAt(r Rate, now func() time.Time) *Limiter {
	return NewLimiter(r, now, remembered)
}

// SharedAt returns a limiter whose rate payers share; r is the rate when a setting says it.
func (b *Budget) SharedAt(r Rate, now func() time.Time) *SharedLimiter {
	return newSharedLimiter(r, now, remembered)
}

// Shared is SharedAt for a row with a rate of its own.
func (b *Budget) Shared(now func() time.Time) *SharedLimiter { return b.SharedAt(b.Rate, now) }

// NewPool returns a pool as large as the row says.
func (b *Budget) NewPool() *Pool { return b.PoolOf(b.Pool) }

// PoolOf returns a pool of another size, where the row's does not fit.
func (b *Budget) PoolOf(size int64) *Pool { return NewPool(size) }

// Daily returns the rate of n a day, all of which may be spent at once.
func Daily(n int) Rate {
	return Rate{PerSecond: float64(n) / (24 * time.Hour).Seconds(), Burst: n}
}

// Share returns in words what one payer may have.
func (b *Budget) Share() string {
	var words []string
	switch {
	case b.Setting != "" && b.Per != "":
		words = append(words, fmt.Sprintf("`%s` for each %s; one payer at most three quarters", b.Setting, b.Per))
	case b.Setting != "":
		words = append(words, "`"+b.Setting+"`")
	case b.Pool > 0 && b.Per != "":
		words = append(words, fmt.Sprintf("%s for each %s; one payer at most three quarters", b.countOf(b.Pool), b.Per))
	case b.Pool > 0:
		words = append(words, "all together "+b.countOf(b.Pool)+"; one payer at most three quarters")
	case b.Rate != (Rate{}) && b.Per != "":
		words = append(words, fmt.Sprintf("%s for each %s; one payer at most three quarters", b.rateOf(), b.Per))
	case b.Rate != (Rate{}):
		words = append(words, b.rateOf())
	case b.Hourly > 0:
		words = append(words, fmt.Sprintf("%d an hour and %d a day", b.Hourly, b.Daily))
	default:
		words = append(words, b.Each)
	}
	if b.Note != "" {
		words = append(words, b.Note)
	}
	return strings.Join(words, "; ")
}

// countOf writes a number, or a number of bytes.
func (b *Budget) countOf(n int64) string {
	if b.Bytes {
		for _, unit := range []struct {
			size int64
			name string
		}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
			if n >= unit.size && n%unit.size == 0 {
				return fmt.Sprintf("%d %s", n/unit.size, unit.name)
			}
		}
	}
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// units are the times in which rates are written.
var units = []struct {
	seconds float64
	name    string
}{{1, "a second"}, {60, "a minute"}, {3600, "an hour"}, {86400, "a day"}}

// rateOf writes the rate in the unit in which all of it may be spent at once, or else in the
// shortest in which it is a whole number.
func (b *Budget) rateOf() string {
	in := func(n int) float64 { return b.Rate.PerSecond * units[n].seconds }
	often := 0
	for often < len(units)-1 && in(often) < 0.999 {
		often++
	}
	for n, unit := range units {
		if int(in(n)+0.5) == b.Rate.Burst {
			return b.countOf(int64(b.Rate.Burst)) + " " + unit.name
		}
	}
	return b.countOf(int64(in(often)+0.5)) + " " + units[often].name + ", " + b.countOf(int64(b.Rate.Burst)) + " at once"
}

// OperationsTable returns the rows as the table of docs/operations.md.
func OperationsTable() string {
	var t strings.Builder
	t.WriteString("| what is bounded | who pays | share | beyond |\n|---|---|---|---|\n")
	for _, b := range budgets {
		fmt.Fprintf(&t, "| %s | %s | %s | %s |\n", b.Bounds, b.Payer, b.Share(), b.Beyond)
	}
	return t.String()
}
