package policy

import (
	"fmt"
	"strings"
	"time"
)

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

// DescribeShare returns a description of the share of one payer.
func (b *Budget) DescribeShare() string {
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

// countOf returns a number as text. If b.Bytes is true, it uses KiB, MiB or GiB where it can.
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

// units are the units of time in which rates are written.
var units = []struct {
	seconds float64
	name    string
}{{1, "a second"}, {60, "a minute"}, {3600, "an hour"}, {86400, "a day"}}

// rateOf returns the rate as text. It uses the unit of time in which the rate equals the burst.
// If there is no such unit, it uses the shortest unit in which the rate is at least one, and adds
// the burst.
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

// OperationsTable returns the rows as the table in docs/operations.md.
func OperationsTable() string {
	var t strings.Builder
	t.WriteString("| what is bounded | who pays | share | beyond |\n|---|---|---|---|\n")
	for _, b := range budgets {
		fmt.Fprintf(&t, "| %s | %s | %s | %s |\n", b.Bounds, b.Payer, b.DescribeShare(), b.Beyond)
	}
	return t.String()
}
