package instance_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/vocab"
)

// One domain has far more ignored activities than all others together. Trim removes the oldest of
// that domain, and none of the others.
func TestNoDomainPushesOutWhatOthersHadIgnored(t *testing.T) {
	t.Parallel()
	c := dbtest.New(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	id := func(host string, n int) vocab.ID { return vocab.ID(fmt.Sprintf("https://%s/%d", host, n)) }
	add := func(host string, n int) {
		t.Helper()
		var all []instance.Ignored
		for i := range n {
			all = append(all, instance.Ignored{Activity: id(host, i), Reason: "nobody", Host: host, At: at.Add(time.Duration(i) * time.Second)})
		}
		if err := c.Instance.Ignored.Add(t.Context(), append(all, all[0])); err != nil {
			t.Fatal(err)
		}
	}
	add("small.example", 5)
	add("other.example", 10)
	add("flood.example", 500)
	if err := c.Instance.Ignored.Trim(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		host string
		n    int
		want bool
	}{{"small.example", 0, true}, {"other.example", 0, true}, {"flood.example", 414, false}, {"flood.example", 415, true}, {"flood.example", 499, true}} {
		got, err := c.Instance.Ignored.Find(t.Context(), id(tt.host, tt.n))
		if err != nil || (got != nil) != tt.want {
			t.Errorf("%s has %+v, %v; want it remembered: %v", id(tt.host, tt.n), got, err, tt.want)
		}
	}
	got, err := c.Instance.Ignored.Find(t.Context(), "HTTPS://SMALL.example/3")
	if err != nil || got == nil || got.Reason != "nobody" || !got.At.Equal(at.Add(3*time.Second)) {
		t.Errorf("by another spelling there is %+v, %v", got, err)
	}
	if err := c.Instance.Ignored.Trim(t.Context(), 100); err != nil {
		t.Fatal(err)
	}

	// The limit holds even if it is lower than the number of domains.
	if err := c.Instance.Ignored.Trim(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	left := 0
	for host, n := range map[string]int{"small.example": 5, "other.example": 10, "flood.example": 500} {
		for i := range n {
			got, err := c.Instance.Ignored.Find(t.Context(), id(host, i))
			if err != nil {
				t.Fatal(err)
			}
			if got != nil {
				left++
			}
		}
	}
	if left > 2 {
		t.Errorf("%d rows of three domains are left, want at most 2", left)
	}
}
