package cmd

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestDeliveriesAreReported(t *testing.T) {
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	next := at.Add(2 * time.Hour)
	job := admin.DeliveryJob{User: alice}
	job.ID, job.Activity, job.Type, job.Status = uuid.MustParse("0192d3a4-0000-7000-8000-000000000000"), "https://here.example/1", "Create", "partial"
	job.JobCounts, job.CreatedAt = admin.JobCounts{Total: 2, Pending: 1, Delivered: 1}, at
	here, down := admin.DeliveryState{}, admin.DeliveryState{Inactive: &next, Closed: &next}
	here.Status, here.Count, here.Oldest = "delivered", 4, at
	down.Host, down.Status, down.Count, down.Oldest, down.Error = "down.example", "parked", 3, at, "no such host"
	shown := []admin.ShownDeliveries{{DeliveryJob: job, Deliveries: []admin.DeliveryDetail{{Inbox: "https://up.example/inbox", Host: "up.example", Status: "delivered", Attempts: 1, LastStatus: 202},
		{Inbox: "https://down.example/inbox", Host: "down.example", Status: "pending", Attempts: 2, NextAt: &next, Error: "no \x1b route"}}}}
	retried := admin.RetryReport{Matched: 15, Requeued: 15, Delivered: 12, Failed: 3, Hosts: []admin.RetriedHost{{User: alice, Host: "up.example", Matched: 12, Delivered: 12},
		{User: alice, Host: "down.example", Matched: 3, Failed: 3, Error: "no such host", NextAt: &next}}}
	held := admin.RetryReport{Matched: 2, Requeued: 2, Paused: 2, Hosts: []admin.RetriedHost{{User: alice, Host: "held.example", Matched: 2, Error: "no such host", Paused: true}}}
	for _, tt := range []struct {
		name           string
		terminal, json bool
		show           func(p *printer) error
		want           string
	}{
		{"a list, to a pipe", false, false, func(p *printer) error {
			return p.showDeliveryList(admin.DeliveryList{Jobs: []admin.DeliveryJob{job}}, false)
		},
			"alice\t0192d3a4-0000-7000-8000-000000000000\thttps://here.example/1\tCreate\t2026-03-01T12:00:00Z\tpartial\t2\t1\t1\t0\t0\n"},
		{"a list, line by line", true, true, func(p *printer) error {
			return p.showDeliveryList(admin.DeliveryList{Jobs: []admin.DeliveryJob{job}}, true)
		},
			`{"user":"alice","job":"0192d3a4-0000-7000-8000-000000000000","activity":"https://here.example/1","type":"Create","status":"partial",` +
				`"counts":{"total":2,"pending":1,"delivered":1,"failed":0,"skipped":0},"created_at":"2026-03-01T12:00:00Z"}` + "\n"},
		{"a job, to people", true, false, func(p *printer) error { return p.showDeliveries(shown) },
			"Create by alice, 2026-03-01T12:00:00Z: partial\n  activity  https://here.example/1\n  job       0192d3a4-0000-7000-8000-000000000000\n" +
				"  1 of 2 inboxes have it, 1 are tried again, 0 failed, 0 skipped\n" +
				"STATUS     INBOX                       ATTEMPTS  ANSWER  NEXT                  LAST ERROR\n" +
				"delivered  https://up.example/inbox    1         202\n" +
				"pending    https://down.example/inbox  2                 2026-03-01T14:00:00Z  no \ufffd route\n"},
		{"a job, to a pipe", false, false, func(p *printer) error { return p.showDeliveries(shown) },
			"alice\t0192d3a4-0000-7000-8000-000000000000\thttps://here.example/1\tCreate\t2026-03-01T12:00:00Z\tpartial\t2\t1\t1\t0\t0\n" +
				"delivered\thttps://up.example/inbox\t1\t202\t\t\npending\thttps://down.example/inbox\t2\t\t2026-03-01T14:00:00Z\tno \ufffd route\n"},
		{"a retry, to people", true, false, func(p *printer) error { return p.showRetried(retried, true) },
			"USER   HOST          DUE  SENT  FAILED  LAST ERROR\nalice  up.example    12   12    0\nalice  down.example  3    0     3       no such host\n" +
				"12 delivered, 3 failed again, the next try is at 2026-03-01T14:00:00Z\n"},
		{"a retry, to a pipe", false, false, func(p *printer) error { return p.showRetried(retried, true) },
			"alice\tup.example\t12\t12\t0\t\nalice\tdown.example\t3\t0\t3\tno such host\n"},
		{"a retry, to programs", false, true, func(p *printer) error { return p.showRetried(retried, true) },
			`{"matched":15,"requeued":15,"delivered":12,"failed":3,"skipped":0,"skipped_blocked":0,"paused":0,"all_paused":false,"hosts":[{"user":"alice","host":"up.example","matched":12,"delivered":12,"failed":0,"skipped":0},` +
				`{"user":"alice","host":"down.example","matched":3,"delivered":0,"failed":3,"skipped":0,"last_error":"no such host","next_attempt_at":"2026-03-01T14:00:00Z"}],"failures":null,"dry_run":false}` + "\n"},
		{"a retry that was not made", true, false, func(p *printer) error {
			return p.showRetried(admin.RetryReport{Matched: 3, SkippedBlocked: 1, DryRun: true}, false)
		}, "USER  HOST  DUE  SENT  FAILED  LAST ERROR\n2 deliveries would be tried again\n"},
		{"a retry to a paused host", true, false, func(p *printer) error { return p.showRetried(held, false) },
			"USER   HOST          DUE  SENT  FAILED  LAST ERROR\nalice  held.example  2    0     0       paused: waits for 'host resume'\n" +
				"✓ 2 deliveries are due; 2 to paused hosts wait for 'lightweb host resume'\n"},
		{"a retry while federation is paused", true, false, func(p *printer) error {
			return p.showRetried(admin.RetryReport{Matched: 2, Requeued: 2, AllPaused: true}, false)
		}, "USER  HOST  DUE  SENT  FAILED  LAST ERROR\n✓ 2 deliveries are due; those to other servers wait: federation.mode is paused\n"},
		{"how they stand", true, false, func(p *printer) error {
			return p.showDeliveryStatus(admin.DeliveryStatus{States: []admin.DeliveryState{here, down}})
		}, "HOST           STATE      COUNT  OLDEST                NEXT  HELD BACK                            LAST ERROR\n" +
			"(this server)  delivered  4      2026-03-01T12:00:00Z\n" +
			"down.example   parked     3      2026-03-01T12:00:00Z        inactive since 2026-03-01T14:00:00Z  no such host\n"},
		{"what was dropped", true, false, func(p *printer) error { return p.showDropped(admin.DropReport{Matched: 2, Dropped: 2, Delivering: 1}) },
			"✓ 2 deliveries dropped; 1 are being tried now and were left alone\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, out := screen(tt.terminal)
			a.out.json = tt.json
			if err := tt.show(a.out); err != nil || out.String() != tt.want {
				t.Errorf("wrote\n%s%v, want\n%s", out, err, tt.want)
			}
		})
	}
}

func TestARetrySaysWhatItSkipped(t *testing.T) {
	t.Parallel()
	alice, err := vocab.ParseUsername("alice")
	if err != nil {
		t.Fatal(err)
	}
	a, out := screen(true)
	r := admin.RetryReport{Matched: 2, Requeued: 2, Delivered: 1, Skipped: 1, Hosts: []admin.RetriedHost{{User: alice, Host: "gone.example", Matched: 2, Delivered: 1, Skipped: 1, Error: "410"}}}
	want := "USER   HOST          DUE  SENT  FAILED  LAST ERROR\nalice  gone.example  2    1     0       410\n✓ 1 delivered, 0 failed again, 1 skipped\n"
	if err := a.out.showRetried(r, true); err != nil || out.String() != want {
		t.Errorf("wrote\n%s%v, want\n%s", out, err, want)
	}
}
