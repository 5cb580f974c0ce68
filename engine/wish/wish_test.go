package wish

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/fault"
)

// desk stores wishes and fulfils them. It records its steps.
type desk struct {
	now   time.Time
	due   []instance.Wish
	fails map[string]error // the keys are accounts
	steps []string
	log   bytes.Buffer
}

func (d *desk) Due(context.Context, time.Time, int) ([]instance.Wish, error) { return d.due, nil }

func (d *desk) Remove(_ context.Context, w instance.Wish) error {
	d.steps = append(d.steps, "removed "+w.Account)
	return nil
}

func (d *desk) Postpone(_ context.Context, w instance.Wish, until time.Time) error {
	d.steps = append(d.steps, fmt.Sprintf("postponed %s by %s after %d", w.Account, until.Sub(d.now), w.Attempts))
	return nil
}

func (d *desk) FulfilWish(_ context.Context, w instance.Wish) error {
	d.steps = append(d.steps, w.Kind+" "+w.Account)
	return d.fails[w.Account]
}

// look calls LookAround once and checks the steps.
func (d *desk) look(t *testing.T, want ...string) {
	t.Helper()
	d.steps, d.now = nil, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	NewWatcher(Deps{Wishes: d, Fulfiller: d, Log: slog.New(slog.NewTextHandler(&d.log, nil)), Now: func() time.Time { return d.now }}).LookAround(t.Context())
	if !slices.Equal(d.steps, want) {
		t.Errorf("the steps are %q, want %q", d.steps, want)
	}
}

func TestAServerIsAskedForOneFollowInALook(t *testing.T) {
	t.Parallel()
	d := &desk{due: []instance.Wish{{Kind: "follow", Account: "a@x.example", Host: "x.example"}, {Kind: "follow", Account: "b@x.example", Host: "x.example"},
		{Kind: "block", Account: "c@x.example", Host: "x.example"}, {Kind: "follow", Account: "d@y.example", Host: "y.example"}}}
	d.look(t, "follow a@x.example", "removed a@x.example", "block c@x.example", "removed c@x.example", "follow d@y.example", "removed d@y.example")
}

func TestAWishIsTriedAgainAndThenGivenUp(t *testing.T) {
	t.Parallel()
	w := instance.Wish{Kind: "follow", Account: "a@x.example", Host: "x.example"}
	d := &desk{fails: map[string]error{w.Account: fault.New(fault.Unavailable, "too many requests wait for that server").WithCode(codeWaiting)}}
	for _, wait := range []string{"5m0s", "1h0m0s", "12h0m0s"} {
		d.due = []instance.Wish{w}
		d.look(t, "follow a@x.example", fmt.Sprintf("postponed a@x.example by %s after %d", wait, w.Attempts+1))
		w.Attempts++
	}
	d.due = []instance.Wish{w}
	d.look(t, "follow a@x.example", "removed a@x.example")
	d.due[0].Attempts, d.fails[w.Account] = 0, fault.New(fault.NotFound, "there is no such actor")
	d.look(t, "follow a@x.example", "removed a@x.example")
	if n := strings.Count(d.log.String(), "wish given up"); n != 2 {
		t.Errorf("the log tells of %d wishes that were given up, want 2: %s", n, &d.log)
	}
}

func TestAWishWaitsForABrokenConfigurationWithoutEnd(t *testing.T) {
	t.Parallel()
	w := instance.Wish{Kind: "mute", Account: "a@x.example", Host: "x.example", Attempts: len(patience)}
	d := &desk{due: []instance.Wish{w}, fails: map[string]error{w.Account: fault.New(fault.Config, "config.json is not valid")}}
	d.look(t, "mute a@x.example", "postponed a@x.example by 5m0s after 3")
}
