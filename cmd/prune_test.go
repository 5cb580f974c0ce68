package cmd

import (
	"testing"

	"github.com/lightweb/lightweb/engine/admin"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAPruningIsReported(t *testing.T) {
	carol, err := vocab.ParseUsername("carol")
	if err != nil {
		t.Fatal(err)
	}
	var counts admin.PruneCounts
	counts.Activities, counts.Objects, counts.Reactions, counts.Deliveries = 3, 2, 1, 4
	whole := admin.PruneReport{Users: []admin.PrunedUser{{User: carol, PruneCounts: counts}}, PruneCounts: counts, Days: 180, Millis: 90}
	would, failed := whole, whole
	would.DryRun = true
	failed.Users = []admin.PrunedUser{{User: carol, Error: "the database cannot be reached", Hint: "is PostgreSQL running?"}}
	failed.PruneCounts, failed.Failed = admin.PruneCounts{}, 1
	for _, tt := range []struct {
		name           string
		report         admin.PruneReport
		terminal, json bool
		want           string
	}{
		{"to people", whole, true, false, "✓ 3 activities, 2 objects, 1 reactions, 0 actors, 4 deliveries, 0 jobs and 0 reports pruned in 1 databases in 90ms, 0 failed\n"},
		{"what would go, to people", would, true, false, "3 activities, 2 objects, 1 reactions, 0 actors, 4 deliveries, 0 jobs and 0 reports to prune in 1 databases in 90ms, 0 failed\n"},
		{"a failure, to people", failed, true, false, "0 activities, 0 objects, 0 reactions, 0 actors, 0 deliveries, 0 jobs and 0 reports pruned in 1 databases in 90ms, 1 failed\n  failure  carol: the database cannot be reached\n"},
		{"to a pipe", whole, false, false, "users: 1\npruned_activities: 3\npruned_objects: 2\npruned_reactions: 1\npruned_actors: 0\npruned_deliveries: 4\npruned_jobs: 0\nfailed_deliveries: 0\npruned_audit: 0\npruned_messages: 0\npruned_acquaintances: 0\npruned_reports: 0\nforgotten_actors: 0\nforgotten_hosts: 0\nfailed: 0\ndays: 180\nelapsed_ms: 90\ndry_run: false\n"},
		{"to programs", whole, false, true, `{"users":[{"user":"carol","pruned_activities":3,"pruned_objects":2,"pruned_reactions":1,"pruned_actors":0,"pruned_deliveries":4,"pruned_jobs":0,"failed_deliveries":0,"pruned_audit":0,"pruned_messages":0,"pruned_acquaintances":0}],"pruned_activities":3,"pruned_objects":2,"pruned_reactions":1,"pruned_actors":0,"pruned_deliveries":4,"pruned_jobs":0,"failed_deliveries":0,"pruned_audit":0,"pruned_messages":0,"pruned_acquaintances":0,"pruned_reports":0,"forgotten_actors":0,"forgotten_hosts":0,"failed":0,"days":180,"elapsed_ms":90,"dry_run":false}` + "\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, out := screen(tt.terminal)
			a.out.json = tt.json
			if err := a.out.showPruned(tt.report); err != nil || out.String() != tt.want {
				t.Errorf("wrote %s, %v, want %s", out, err, tt.want)
			}
		})
	}
}
