package instance

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/lightweb/lightweb/engine/policy"
)

// Rate limits how often an event may happen. The zero Rate means no limit.
type Rate struct {
	Events float64 // per second, in the long run
	Burst  int     // events that may happen at one time
}

var rateUnits = []struct {
	name    string
	seconds float64
}{{"s", 1}, {"min", 60}, {"h", 3600}}

// ParseRate reads a rate as the configuration writes it: 50/s burst 1000, 20/min or off. The
// units are s, min and h. Without a burst, the burst is the number of events.
func ParseRate(s string) (Rate, error) {
	if s == "off" {
		return Rate{}, nil
	}
	wrong := fmt.Errorf("%q is not a rate such as '50/s burst 1000', '20/min' or 'off'", s)
	words := strings.Fields(s)
	if len(words) != 1 && (len(words) != 3 || words[1] != "burst") {
		return Rate{}, wrong
	}
	number, unit, _ := strings.Cut(words[0], "/")
	events, err := strconv.ParseUint(number, 10, 31)
	if err != nil || events == 0 {
		return Rate{}, wrong
	}
	burst := events
	if len(words) == 3 {
		if burst, err = strconv.ParseUint(words[2], 10, 31); err != nil || burst == 0 {
			return Rate{}, wrong
		}
	}
	for _, u := range rateUnits {
		if u.name == unit {
			return Rate{Events: float64(events) / u.seconds, Burst: int(burst)}, nil
		}
	}
	return Rate{}, wrong
}

// String returns the rate in the form that ParseRate reads.
func (r Rate) String() string {
	if r == (Rate{}) {
		return "off"
	}
	for _, u := range rateUnits {
		n := r.Events * u.seconds
		if whole := math.Round(n); whole >= 1 && math.Abs(n-whole) < 1e-6 {
			s := fmt.Sprintf("%.0f/%s", whole, u.name)
			if int(whole) != r.Burst {
				s += fmt.Sprintf(" burst %d", r.Burst)
			}
			return s
		}
	}
	return fmt.Sprintf("%g/s burst %d", r.Events, r.Burst)
}

// policy returns the rate in the form that limiters accept.
func (r Rate) policy() policy.Rate { return policy.Rate{PerSecond: r.Events, Burst: r.Burst} }
