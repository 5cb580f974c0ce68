package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// After five failures a dead host gets no more deliveries. When the operator probes the host, one
// delivery finds out whether it is back. Deliveries to a paused host continue when the operator
// resumes the host.
func TestTheOperatorSeesAndSteersHosts(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t)
	reader, writer := b.CreateUser(t, "reader"), a.CreateUser(t, "writer")
	befriend(t, reader, writer)
	host := strings.TrimPrefix(b.URL, "http://")

	type report struct {
		Host, State, Software string
		Failures              int
	}
	show := func() (h report) {
		t.Helper()
		a.Run(t, "host", "show", host, "--json").Decode(t, &h)
		return h
	}
	steer := func(do string, want int) {
		t.Helper()
		if r := a.Run(t, "host", do, host); r.Code != want {
			t.Errorf("host %s ended with %d, want %d: %s", do, r.Code, want, r.Stderr)
		}
	}
	enginetest.Eventually(t, "the host is known", func() bool { return strings.HasPrefix(show().Software, "Lightweb/") })
	if h := show(); h.State != "ok" || h.Failures != 0 {
		t.Errorf("the host is %+v, want ok", h)
	}
	steer("probe", 73)

	b.Stop(t)
	var ids []string
	for range 6 {
		id, _ := writer.Post(t, map[string]any{"content": "are you there?"})
		ids = append(ids, id)
	}
	enginetest.Eventually(t, "the breaker opens", func() bool { return show().State == "open" })
	const untried = `SELECT count(*) FROM deliveries WHERE status = 'pending' AND attempts = 0`
	late, _ := writer.Post(t, map[string]any{"content": "still away?"})
	b.Start(t)
	steer("probe", 0)
	for _, id := range append(ids[5:], late) { // those that were never tried; the other deliveries wait for their next attempt
		if slices.Equal(writer.Column(t, untried+` AND job_id = (SELECT id FROM delivery_jobs WHERE activity_uri = $1)`, id), []string{"1"}) {
			delivered(t, writer, id, false)
		}
	}
	enginetest.Eventually(t, "the host is back", func() bool { return show().State == "ok" })

	steer("pause", 0)
	enginetest.Eventually(t, "the running server knows", func() bool { return a.Metric(t, `lightweb_delivery_hosts{state="paused"}`) == 1 })
	held, _ := writer.Post(t, map[string]any{"content": "held back"})
	steer("probe", 73)
	if got := writer.Column(t, untried+` AND job_id = (SELECT id FROM delivery_jobs WHERE activity_uri = $1)`, held); !slices.Equal(got, []string{"1"}) {
		t.Errorf("%v deliveries are untried while the host is paused, want 1", got)
	}
	if r := a.Run(t, "host", "list"); r.Code != 0 || !strings.HasPrefix(r.Stdout, host+"\tpaused\t") {
		t.Errorf("host list: %d %q", r.Code, r.Stdout)
	}
	steer("resume", 0)
	delivered(t, writer, held, false)

	for args, want := range map[string]int{"host show nobody.example": 66, "host resume nobody.example": 66, "host pause not/a/host": 64,
		"host pause " + strings.TrimPrefix(a.URL, "http://"): 65, "host show": 64} {
		if r := a.Run(t, strings.Fields(args)...); r.Code != want {
			t.Errorf("%s ended with %d, want %d: %s", args, r.Code, want, r.Stderr)
		}
	}
}
