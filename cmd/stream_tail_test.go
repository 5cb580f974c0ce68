package cmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/muesli/termenv"

	"github.com/lightweb/lightweb/engine/admin"
)

func TestATimeIsHowLongAgoOrAbsolute(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 21, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]time.Time{"10m": now.Add(-10 * time.Minute), "2d": now.Add(-48 * time.Hour), "2026-02-21T11:00:00Z": now.Add(-time.Hour)} {
		if got, err := parseSince(s, now); err != nil || !got.Equal(want) {
			t.Errorf("parseSince(%q) = %v, %v; want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"yesterday", "-1h", "10"} {
		if got, err := parseSince(s, now); err == nil {
			t.Errorf("parseSince(%q) = %v, want an error", s, got)
		}
	}
}

// The terminal shows each event as one line, even if the event contains line breaks.
func TestATerminalShowsALineForEachEvent(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	a := newApp([]string{"NO_COLOR=1"}, nil, &out, &errs)
	a.noColor = true
	a.out = a.printer(&out)
	a.out.terminal = true
	tail := &tailed{app: a, types: map[string]int{}}
	for _, i := range []admin.TailItem{
		{ID: "1-1", Type: "create.received", Source: "ap", Timestamp: "2026-02-21T12:00:01.204Z", Payload: json.RawMessage(`{"actorUri":"https://peer.example/bob\u001b[2J","objectUri":"https://peer.example/n","trust":"contact"}`)},
		{ID: "1-2", Type: "follow.sent", Payload: json.RawMessage(`{"actorUri":"https://example.org/users/alice","objectUri":"https://peer.example/bob","trust":"self"}`)},
		{ID: "1-3", Type: "x\ny", Source: "other", Payload: json.RawMessage(`"text"`)},
		{Type: admin.TailGap, FirstID: "9-9"},
		{Type: admin.TailReset},
	} {
		if err := tail.show(i); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	want := []string{"create.received         https://peer.example/bob\ufffd[2J  https://peer.example/n", "follow.sent             →  https://peer.example/bob", "x y", "events before 9-9 are gone", "made anew"}
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), out.String())
	}
	for n, l := range lines {
		if !strings.Contains(l, want[n]) {
			t.Errorf("line %d is %q, want %q in it", n, l, want[n])
		}
	}
	if errs.Len() > 0 {
		t.Errorf("standard error: %s", errs.String())
	}
}

// On a terminal, the colour of an event's type says whether something failed, was sent, or came.
// Notes between events have a colour of their own.
func TestATerminalShowsEventsInColour(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		item admin.TailItem
		text string // the part of the line that is coloured
		code string // the colour, as the terminal is told it
	}{
		{admin.TailItem{ID: "1-1", Type: "like.received"}, "like.received", "36"},
		{admin.TailItem{ID: "1-2", Type: "follow.sent"}, "follow.sent", "32"},
		{admin.TailItem{ID: "1-3", Type: "delivery.failed"}, "delivery.failed", "31"},
		{admin.TailItem{ID: "1-4", Type: "stream.gap"}, "stream.gap", "31"},
		{admin.TailItem{Type: admin.TailGap, FirstID: "9-9"}, "— events before 9-9 are gone —", "33"},
		{admin.TailItem{Type: admin.TailReset}, "— the stream was made anew —", "33"},
	} {
		var out bytes.Buffer
		a := newApp(nil, nil, &out, &bytes.Buffer{})
		a.out = a.printer(&out)
		a.out.terminal = true
		a.out.renderer.SetColorProfile(termenv.ANSI)
		tail := &tailed{app: a, types: map[string]int{}}
		if err := tail.show(tt.item); err != nil {
			t.Fatal(err)
		}
		if want := "\x1b[" + tt.code + "m" + tt.text; !strings.Contains(out.String(), want) {
			t.Errorf("%s: the terminal is told %q, want %q in it", tt.item.Type, out.String(), want)
		}
	}
}
