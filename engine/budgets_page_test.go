package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/policy"
)

// docs/operations.md shows the same table of budgets as the code.
func TestTheOperationsPageShowsTheBudgets(t *testing.T) {
	expectTable(t, "../docs/operations.md", "budgets", "OperationsPage", tableOfBudgets())
}

func TestSharesAreWrittenInWords(t *testing.T) {
	for _, tt := range []struct {
		b    policy.Budget
		want string
	}{
		{policy.Budget{Rate: policy.Rate{PerSecond: 1.0 / 60, Burst: 30}}, "1 a minute, 30 at once"},
		{policy.Budget{Rate: policy.Rate{PerSecond: 5, Burst: 5}, Per: "host"}, "5 a second for each host; one payer at most three quarters"},
		{policy.Budget{Rate: policy.Daily(256 << 20), Bytes: true}, "256 MiB a day"},
		{policy.Budget{Pool: 50_000, Note: "but not on Sundays"}, "all together 50,000; one payer at most three quarters; but not on Sundays"},
		{policy.Budget{Setting: "limits.x"}, "`limits.x`"},
		{policy.Budget{Each: "1 KiB"}, "1 KiB"},
		{policy.Budget{Hourly: 60, Daily: 500}, "60 an hour and 500 a day"},
	} {
		if got := describeShare(&tt.b); got != tt.want {
			t.Errorf("describeShare = %q, want %q", got, tt.want)
		}
	}
}

// describeShare returns a description of the share of one payer.
func describeShare(b *policy.Budget) string {
	var words []string
	switch {
	case b.Setting != "" && b.Per != "":
		words = append(words, fmt.Sprintf("`%s` for each %s; one payer at most three quarters", b.Setting, b.Per))
	case b.Setting != "":
		words = append(words, "`"+b.Setting+"`")
	case b.Pool > 0 && b.Per != "":
		words = append(words, fmt.Sprintf("%s for each %s; one payer at most three quarters", describeCount(b, b.Pool), b.Per))
	case b.Pool > 0:
		words = append(words, "all together "+describeCount(b, b.Pool)+"; one payer at most three quarters")
	case b.Rate != (policy.Rate{}) && b.Per != "":
		words = append(words, fmt.Sprintf("%s for each %s; one payer at most three quarters", describeRate(b), b.Per))
	case b.Rate != (policy.Rate{}):
		words = append(words, describeRate(b))
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

// describeCount returns a number as text. If b.Bytes is true, it uses KiB, MiB or GiB where it can.
func describeCount(b *policy.Budget, n int64) string {
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

// rateUnits are the units of time in which rates are written.
var rateUnits = []struct {
	seconds float64
	name    string
}{{1, "a second"}, {60, "a minute"}, {3600, "an hour"}, {86400, "a day"}}

// describeRate returns the rate as text. It uses the unit of time in which the rate equals the
// burst. If there is no such unit, it uses the shortest unit in which the rate is at least one,
// and adds the burst.
func describeRate(b *policy.Budget) string {
	in := func(n int) float64 { return b.Rate.PerSecond * rateUnits[n].seconds }
	often := 0
	for often < len(rateUnits)-1 && in(often) < 0.999 {
		often++
	}
	for n, unit := range rateUnits {
		if int(in(n)+0.5) == b.Rate.Burst {
			return describeCount(b, int64(b.Rate.Burst)) + " " + unit.name
		}
	}
	return describeCount(b, int64(in(often)+0.5)) + " " + rateUnits[often].name + ", " + describeCount(b, int64(b.Rate.Burst)) + " at once"
}

// tableOfBudgets returns the table in docs/operations.md.
func tableOfBudgets() string {
	var t strings.Builder
	t.WriteString("| what is bounded | who pays | share | beyond |\n|---|---|---|---|\n")
	for _, b := range policy.Budgets() {
		fmt.Fprintf(&t, "| %s | %s | %s | %s |\n", b.Bounds, b.Payer, describeShare(b), b.Beyond)
	}
	return t.String()
}
