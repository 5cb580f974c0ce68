package cmd

import (
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/explain"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestATraceIsShown(t *testing.T) {
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	trace := explain.Trace{URI: "https://here.example/users/alice/activities/1", Local: true, Known: true, Users: []explain.UserTrace{{
		User: alice, Outcome: explain.TraceSent, Says: "It is the user's own.", Follows: []vocab.ID{}, Activities: []explain.TracedActivity{},
		Jobs: []explain.TracedJob{{ID: "x", Type: "Create", CreatedAt: at, Counts: explain.JobCounts{Total: 2, Pending: 1, Delivered: 1}, Deliveries: []explain.TracedDelivery{
			{Inbox: "https://a.example/inbox", Status: "pending", Attempts: 2, NextAt: &at, LastStatus: 503, Error: "unavailable\x1b[31m"},
			{Inbox: "https://b.example/inbox", Status: "delivered", Attempts: 1}}}}}}}
	for _, tt := range []struct {
		name     string
		terminal bool
		want     string
	}{
		{"to people", true, "USER   OUTCOME  WHAT HAPPENED\nalice  sent     It is the user's own.\nalice  pending  Create to https://a.example/inbox, 2 attempts, answered 503, next 2026-03-01T12:00:00Z: unavailable�[31m\n"},
		{"to a pipe", false, "alice\tsent\tIt is the user's own.\nalice\tpending\tCreate to https://a.example/inbox, 2 attempts, answered 503, next 2026-03-01T12:00:00Z: unavailable�[31m\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, out := screen(tt.terminal)
			if err := a.out.showActivity(trace); err != nil || out.String() != tt.want {
				t.Errorf("wrote %q, %v, want %q", out, err, tt.want)
			}
		})
	}
}

func TestThatNothingIsKnownIsExplained(t *testing.T) {
	for _, tt := range []struct {
		name  string
		trace explain.Trace
		hint  string
	}{
		{"a blocked server", explain.Trace{URI: "https://bad.example/1", Blocked: true}, "the policy in registry/server.json refuses bad.example"},
		{"a server nobody has to do with", explain.Trace{URI: "https://far.example/1"}, "nobody here has to do with anybody on far.example: 'lightweb actor fetch' tells whether it answers"},
		{"something of ours", explain.Trace{URI: "https://here.example/1", Local: true}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if f := failureOf(unknownActivity(tt.trace)); f.Exit != 66 || f.Hint != tt.hint {
				t.Errorf("failure %+v, want exit 66 and %q", f, tt.hint)
			}
		})
	}
}
