package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/keyspace/redistest"
)

// A program has the access that user redis-acl gives. It reads only the events of its user. The
// same holds if the operator runs the printed command instead of using --apply.
func TestAProgramReadsItsUsersEventsOnly(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a := enginetest.Start(t, "LIGHTWEB_REDIS_URL="+server.URL())
	alice, bob := a.CreateUser(t, "alice"), a.CreateUser(t, "bob")
	create, _ := alice.Post(t, map[string]any{"content": "hello"})
	other, _ := bob.Post(t, map[string]any{"content": "hello"})
	enginetest.Eventually(t, "both streams tell", func() bool {
		return onStream(server, alice, "create.sent", create) && onStream(server, bob, "create.sent", other)
	})
	for _, args := range [][]string{{"user", "redis-acl", "alice", "--json", "--apply"}, {"user", "redis-acl", "alice", "--json"}} {
		var made struct {
			RedisUser string `json:"redis_user"`
			Password  string
			Command   string
			Applied   bool
		}
		ran := a.Run(t, args...)
		if err := json.Unmarshal([]byte(ran.Stdout), &made); err != nil || ran.Code != 0 {
			t.Fatalf("%v: %d %s %s", args, ran.Code, ran.Stdout, ran.Stderr)
		}
		if !made.Applied {
			server.Do(strings.Fields(made.Command)...)
		}
		if all := server.As(made.RedisUser, made.Password, "XRANGE", "alice:events", "-", "+"); !strings.Contains(all, create) {
			t.Errorf("the program reads %q", all)
		}
		if all := server.As(made.RedisUser, made.Password, "XRANGE", "bob:events", "-", "+"); !strings.Contains(all, "NOPERM") {
			t.Errorf("of another user the program reads %q", all)
		}
	}
	runAll(t, a, []command{{"user redis-acl nobody", 67, "nobody"}, {"user redis-acl a*", 65, ""}, {"user redis-acl alice -q", 64, "shown once"}, {"user delete alice --yes -q", 0, ""}})
	expectDeleted(t, a, alice)
	if all := server.Do("ACL", "USERS"); strings.Contains(all, "lightweb-alice") {
		t.Errorf("after the deletion of alice Redis has the users %q", all)
	}
}
