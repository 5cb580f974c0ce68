package instance

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/signature"
)

// stored is a store that holds the dialect and the software of hosts.
type stored struct {
	dialect string
	at      time.Time
	writes  int

	software []string
}

func (s *stored) Dialect(context.Context, string) (string, time.Time, error) {
	return s.dialect, s.at, nil
}

func (s *stored) LearnDialect(_ context.Context, _, dialect string, now time.Time) error {
	s.dialect, s.at = dialect, now
	s.writes++
	return nil
}

func (s *stored) LearnSoftware(_ context.Context, host, software string) error {
	s.software = append(s.software, host+" "+software)
	return nil
}

func TestWhatAHostCallsItsSoftwareIsStoredOnceAnHour(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &stored{}
	h := newHosts(s, slog.New(slog.DiscardHandler), func() time.Time { return now })
	for _, name := range []string{"", "Mastodon/4.5", "Mastodon/4.5", "Pleroma\n2", strings.Repeat("x", 1000)} {
		h.Heard(t.Context(), "peer.example", signature.Cavage, name)
	}
	now = now.Add(softwareStored)
	h.Heard(t.Context(), "peer.example", signature.Cavage, "Pleroma\n2")
	h.Heard(t.Context(), "other.example", signature.Cavage, strings.Repeat("x", 1000))
	want := []string{"peer.example Mastodon/4.5", "peer.example Pleroma2", "other.example " + strings.Repeat("x", maxSoftware)}
	if !slices.Equal(s.software, want) {
		t.Errorf("stored %q, want %q", s.software, want)
	}
}

// MS-13: the engine remembers for a month which dialect a host accepted. The host's software may
// read more dialects after an update.
func TestWhatAHostTookIsForgottenAfterAMonth(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &stored{}
	h := newHosts(s, slog.New(slog.DiscardHandler), func() time.Time { return now })
	is := func(what string, want signature.Dialect, writes int) {
		t.Helper()
		if d, known := h.Dialect(t.Context(), "peer.example"); d != want || known != (want != 0) || s.writes != writes {
			t.Errorf("%s: dialect %s, known %t, written %d times; want %s, written %d times", what, d, known, s.writes, want, writes)
		}
	}
	is("at first", 0, 0)
	h.Learn(t.Context(), "peer.example", signature.RFC9421)
	is("learnt", signature.RFC9421, 1)
	h.Learn(t.Context(), "peer.example", signature.RFC9421)
	h.Heard(t.Context(), "peer.example", signature.RFC9421, "")
	is("what is known is no news", signature.RFC9421, 1)
	now = now.Add(rfc9421Time)
	is("after a month", signature.RFC9421, 1)
	now = now.Add(dialectCached + time.Second)
	is("a little later", 0, 1)
	h.Learn(t.Context(), "peer.example", signature.RFC9421)
	is("learnt again", signature.RFC9421, 2)
	h = newHosts(s, slog.New(slog.DiscardHandler), func() time.Time { return now })
	is("in another process", signature.RFC9421, 2)
}

// The engine uses the dialect with which a host signs. Some hosts answer 2xx to RFC 9421 without
// reading it.
func TestAHostIsAskedInTheDialectThatItSignsWith(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ took, signs, want signature.Dialect }{
		{0, signature.Cavage, signature.Cavage},
		{0, signature.RFC9421, signature.RFC9421},
		{signature.RFC9421, signature.Cavage, signature.Cavage},
		{signature.Cavage, signature.RFC9421, signature.Cavage},
	} {
		h := newHosts(&stored{}, slog.New(slog.DiscardHandler), time.Now)
		if tt.took != 0 {
			h.Learn(t.Context(), "peer.example", tt.took)
		}
		h.Heard(t.Context(), "peer.example", tt.signs, "")
		if got, _ := h.Dialect(t.Context(), "peer.example"); got != tt.want {
			t.Errorf("a host that took %s and signs with %s is asked in %s, want %s", tt.took, tt.signs, got, tt.want)
		}
	}
}

// A wildcard in a domain's DNS gives the domain any number of host names. The engine stores a
// limited number of hosts for one domain.
func TestADomainHasSoManyHostsWrittenDown(t *testing.T) {
	t.Parallel()
	s := &stored{}
	h := newHosts(s, slog.New(slog.DiscardHandler), func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })
	for n := range policy.StoredHosts.Rate.Burst + 1000 {
		h.Learn(t.Context(), strconv.Itoa(n)+".evil.example", signature.Cavage)
	}
	h.Heard(t.Context(), "heard.evil.example", signature.Cavage, "x")
	if s.writes != policy.StoredHosts.Rate.Burst || len(s.software) != 0 {
		t.Errorf("%d dialects and %d names are written, want %d and none", s.writes, len(s.software), policy.StoredHosts.Rate.Burst)
	}
	h.Learn(t.Context(), "honest.example", signature.Cavage)
	if s.writes != policy.StoredHosts.Rate.Burst+1 {
		t.Error("another domain's host is not written")
	}
}

// MS-13: Pixelfed, Friendica, Mobilizon, Mbin, Owncast and snac2 answer 2xx to RFC 9421, which
// they cannot read. So the engine keeps to draft-cavage until the host refuses it.
func TestDraftCavageIsRememberedUntilItIsRefused(t *testing.T) {
	t.Parallel()
	for name, learn := range map[string]func(h *hosts){
		"learned": func(h *hosts) { h.Learn(t.Context(), "peer.example", signature.Cavage) },
		"heard":   func(h *hosts) { h.Heard(t.Context(), "peer.example", signature.Cavage, "") },
	} {
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		s := &stored{}
		h := newHosts(s, slog.New(slog.DiscardHandler), func() time.Time { return now })
		learn(h)
		now = now.Add(31 * 24 * time.Hour)
		if d, _ := h.Dialect(t.Context(), "peer.example"); d != signature.Cavage {
			t.Errorf("%s: after 31 days the dialect is %s, want %s", name, d, signature.Cavage)
		}
		h.Learn(t.Context(), "peer.example", signature.RFC9421)
		h = newHosts(s, slog.New(slog.DiscardHandler), func() time.Time { return now })
		if d, _ := h.Dialect(t.Context(), "peer.example"); d != signature.RFC9421 {
			t.Errorf("%s: the host refuses it and accepts RFC 9421, but the dialect is %s", name, d)
		}
	}
}
