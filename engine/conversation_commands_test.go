package engine_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/mls/mlstest"
)

// operated holds the JSON that the commands write about a conversation.
type operated struct {
	ID, User, Mode, Status, Host string
	Epoch                        int
	Members                      int
	Roster                       []struct{ Actor, Role string }
	Log                          map[string]int
	Welcomes                     int    `json:"welcomes_waiting"`
	Reset                        string `json:"reset_group_id"`
	Asked                        bool
}

// The operator lists a conversation of the engine, and asks for its reset. From then on the engine
// refuses messages. A second request gets the same id of the next group. alice's stream has one
// event of the reset.
func TestTheOperatorSeesAndResetsConversations(t *testing.T) {
	t.Parallel()
	i := enginetest.Start(t)
	alice, bob := i.CreateUser(t, "alice"), i.CreateUser(t, "bob")
	device, other := mlstest.NewDevice(alice.ID, time.Now()), mlstest.NewDevice(bob.ID, time.Now())
	group := mlstest.NewGroup(device)
	ask := func(path, key string, body map[string]any, want int, into any) {
		t.Helper()
		if status := askJSON(t, alice, http.MethodPost, path, key, body, into); status != want {
			t.Fatalf("%s is answered %d, want %d", path, status, want)
		}
	}
	ask("/api/keypackages", "", map[string]any{"keyPackages": []any{map[string]any{"deviceId": "phone", "content": device.Package, "lastResort": true}}}, http.StatusCreated, nil)
	var made struct{ ID string }
	ask("/api/conversations", "", map[string]any{"groupInfo": group.Info(device)}, http.StatusCreated, &made)
	path := "/api/conversations/" + made.ID
	commit, next := group.Commit(device, mlstest.Change{Add: []*mlstest.Device{other}})
	ask(path+"/commits", "add", map[string]any{"commit": commit, "groupInfo": next.Info(device), "welcomes": [][]byte{next.Welcome(other)}}, http.StatusCreated, nil)
	ask(path+"/messages", "", map[string]any{"message": next.Message()}, http.StatusCreated, nil)

	var list struct {
		Conversations []operated
		Total         int
	}
	i.Run(t, "conversation", "list", "--all", "--json").Decode(t, &list)
	if len(list.Conversations) != 1 || list.Total != 1 {
		t.Fatalf("conversation list --json wrote %+v, want one", list)
	}
	if c := list.Conversations[0]; c.ID != made.ID || c.User != "alice" || c.Mode != "encrypted" || c.Status != "active" || c.Epoch != 1 || c.Members != 2 || c.Host != alice.ID {
		t.Errorf("conversation list --json wrote %+v", c)
	}
	show := func() (c operated) {
		i.Run(t, "conversation", "show", "alice", made.ID, "--json").Decode(t, &c)
		return c
	}
	if c := show(); c.Log["commit"] != 1 || c.Log["application"] != 1 || c.Welcomes != 1 || len(c.Roster) != 2 || c.Roster[0].Actor != alice.ID || c.Roster[0].Role != "admin" || c.Roster[1].Role != "member" {
		t.Errorf("conversation show --json wrote %+v", c)
	}
	var stats struct {
		Users []struct {
			User                                  string
			Available, Consumed, Expired, Devices int
			OneTime                               int `json:"one_time"`
			LastResort                            int `json:"last_resort"`
		}
	}
	i.Run(t, "keypackage", "stats", "alice", "bob", "--json").Decode(t, &stats)
	if len(stats.Users) != 2 || stats.Users[0].LastResort != 1 || stats.Users[0].Available != 1 || stats.Users[0].OneTime != 0 || stats.Users[0].Devices != 1 || stats.Users[1].Devices != 0 {
		t.Errorf("keypackage stats --json wrote %+v, want one of last resort of alice", stats)
	}
	resetFromOutside(t, i, alice, path, next, show)
	const nothing = " 0192d3a4-0000-7000-8000-000000000000"
	runAll(t, i, []command{
		{"conversation list", 64, "give either users or --all"},
		{"conversation list --all --limit 0", 64, "--limit"},
		{"conversation list nobody_here", 67, "no user"},
		{"conversation show alice nonsense", 65, "not the id of a conversation"},
		{"conversation show alice" + nothing, 66, "no such conversation"},
		{"conversation show nobody_here" + nothing, 67, "no user"},
		{"conversation reset alice " + made.ID, 64, "--yes"},
		{"conversation reset bob " + made.ID + " --yes", 66, "no such conversation"},
		{"conversation reset nobody_here" + nothing + " --yes", 67, "no user"},
		{"keypackage stats", 64, "give either users or --all"},
		{"keypackage stats nobody_here", 67, "no user"},
	})
	if line := i.Run(t, "conversation", "list", "alice").Stdout; !strings.HasPrefix(line, "alice\t"+made.ID+"\tencrypted\treset_pending\t1\t2\t"+alice.ID+"\t") {
		t.Errorf("conversation list wrote %q", line)
	}
}

func resetFromOutside(t *testing.T, i *enginetest.Instance, alice *enginetest.User, path string, group *mlstest.Group, show func() operated) {
	t.Helper()
	id := strings.TrimPrefix(path, "/api/conversations/")
	var first, second operated
	i.Run(t, "conversation", "reset", "alice", id, "--yes", "--json").Decode(t, &first)
	i.Run(t, "conversation", "reset", "alice", id, "--yes", "--json").Decode(t, &second)
	if first.Reset == "" || !first.Asked || second.Asked || second.Reset != first.Reset {
		t.Errorf("conversation reset wrote %+v and then %+v, want the same group, asked for once", first, second)
	}
	if c := show(); c.Status != "reset_pending" || c.Reset != first.Reset {
		t.Errorf("after the reset there is %+v", c)
	}
	if status := askJSON(t, alice, http.MethodPost, path+"/messages", "", map[string]any{"message": group.Message()}, nil); status != http.StatusConflict {
		t.Errorf("a message after the reset is answered %d, want 409", status)
	}
	var again struct{ GroupID string }
	if status := askJSON(t, alice, http.MethodPost, path+"/reset", "", map[string]any{}, &again); status != http.StatusAccepted || again.GroupID != first.Reset {
		t.Errorf("the admin's reset is answered %d with %q, want %q", status, again.GroupID, first.Reset)
	}
	enginetest.Eventually(t, "alice's stream tells of the reset, once", func() bool {
		return strings.Count(i.Run(t, "stream", "tail", "alice", "--follow=false", "-n", "1000", "--json").Stdout, "mls.reset.pending") == 1
	})
}
