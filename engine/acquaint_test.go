package engine_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

func TestAcquaintancesAreMadeAgainByTheCommandLine(t *testing.T) {
	t.Parallel()
	home := enginetest.Start(t)
	alice, bob := home.CreateUser(t, "alice"), home.CreateUser(t, "bob")
	alice.Do(t, "Follow", map[string]any{"actorUri": bob.ID})
	enginetest.Eventually(t, "bob lets alice follow", func() bool {
		return len(alice.Column(t, `SELECT 1 FROM relationships WHERE status = 'accepted'`)) == 1
	})
	spoil := func(query string, args ...any) {
		t.Helper()
		if _, err := home.SQL(t, "lightweb").ExecContext(t.Context(), query, args...); err != nil {
			t.Fatal(err)
		}
	}
	acquaint := func(added, superfluous int, removed bool, args ...string) {
		t.Helper()
		ran := home.Run(t, append([]string{"db", "acquaint", "--json"}, args...)...)
		var r struct {
			Added, Superfluous int
			Removed            bool
		}
		if ran.Code != 0 {
			t.Fatalf("db acquaint %q ended with %d\n%s", args, ran.Code, ran.Stderr)
		}
		if ran.Decode(t, &r); r.Added != added || r.Superfluous != superfluous || r.Removed != removed {
			t.Errorf("db acquaint %q says %s, want %d added, %d superfluous, removed %t", args, ran.Stdout, added, superfluous, removed)
		}
	}
	acquaint(0, 0, false, "--all")
	spoil(`DELETE FROM acquaintances WHERE username = 'alice'`)
	spoil(`INSERT INTO acquaintances VALUES ('https://gone.example/users/x', 'bob')`)
	acquaint(1, 1, false, "--all", "--dry-run")
	acquaint(0, 1, false, "bob")
	acquaint(1, 1, false, "--all")
	create, _ := bob.Post(t, map[string]any{"content": "to my acquaintances"})
	alice.Await(t, "main", create, func(i enginetest.Item) bool { return i.ActivityURI == create })

	home.Stop(t)
	epoch := func() (n int) {
		t.Helper()
		if err := home.SQL(t, "lightweb").QueryRowContext(t.Context(), `SELECT epoch FROM serving`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := epoch()
	acquaint(0, 1, true, "--all", "--dry-run")
	if after := epoch(); after != before {
		t.Errorf("a dry run took the place of the serving process: epoch %d, want still %d", after, before)
	}
	acquaint(0, 1, true, "--all")
	spoil(`UPDATE acquaintances SET follows = true`)
	acquaint(0, 1, true, "--all") // alice does follow bob, so only bob's row is wrong
	spoil(`INSERT INTO acquaintances VALUES ('https://gone.example/users/x', 'bob')`)
	spoil(`INSERT INTO intake (uri_digest, actor_digest, raw, recipients) VALUES ('\x01', '\x01', '{}', '{bob}')`)
	acquaint(0, 1, false, "--all") // waiting activities may still need the row
	spoil(`DELETE FROM intake`)
	home.Start(t)
	for _, tt := range []struct {
		args []string
		want int
	}{{nil, 64}, {[]string{"nobody_here"}, 67}} {
		if ran := home.Run(t, append([]string{"db", "acquaint"}, tt.args...)...); ran.Code != tt.want {
			t.Errorf("db acquaint %q ended with %d, want %d", tt.args, ran.Code, tt.want)
		}
	}
}
