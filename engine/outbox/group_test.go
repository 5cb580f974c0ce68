package outbox

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightweb/lightweb/db/dbtest"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// group creates a group with the given members and returns the group's id. It records the
// deliveries of that as delivered.
func (d *desk) group(name string, members ...string) vocab.ID {
	d.t.Helper()
	id := d.must("CreateGroup", map[string]any{"name": name}).Object
	for _, m := range members {
		d.must("AddToGroup", map[string]any{"name": name, "actorUri": m})
	}
	d.owed()
	return id
}

func (d *desk) groups() (all []user.Group) {
	d.t.Helper()
	d.read(func(ctx context.Context, tx *user.Tx) (err error) {
		all, err = tx.Groups.List(ctx)
		return err
	})
	return all
}

// refused checks that a dispatch is refused with the given kind and code.
func (d *desk) refused(action string, params any, kind fault.Kind, code string) {
	d.t.Helper()
	if _, err := d.dispatch(action, params); fault.Of(err) == nil || fault.Of(err).Kind != kind || fault.Of(err).Code != code {
		d.t.Errorf("%s %v: %v, want %s", action, params, err, code)
	}
}

func TestAGroupIsKnownToNobodyElse(t *testing.T) {
	t.Parallel()
	d := town(t)
	id := d.group("close-friends", bob, carol)
	if strings.Contains(string(id), "friends") || !strings.HasPrefix(string(id), string(me)+"/groups/") {
		t.Errorf("the group's id is %s, want one that does not tell its name", id)
	}
	d.must("RemoveFromGroup", map[string]any{"name": "close-friends", "actorUri": "@carol@p.example"})
	if got := d.groups(); len(got) != 1 || got[0].Name != "close-friends" || !slices.Equal(got[0].Members, []vocab.ID{bob}) {
		t.Errorf("groups %+v, want close-friends with bob", got)
	}
	d.refused("RemoveFromGroup", map[string]any{"name": "close-friends", "actorUri": carol}, fault.NotFound, "not_in_group")
	d.refused("AddToGroup", map[string]any{"name": "close-friends", "actorUri": string(me)}, fault.Unprocessable, "invalid_parameter")
	d.must("DeleteGroup", map[string]any{"name": "close-friends"})
	if got, owed := d.groups(), d.owed(); len(got) != 0 || len(owed) != 0 {
		t.Errorf("after it was deleted there are %+v, and %d deliveries; want nothing", got, len(owed))
	}
	d.read(func(ctx context.Context, tx *user.Tx) error {
		if public, err := tx.Activities.Count(ctx, user.Outbound, []vocab.ID{vocab.Public, vocab.ID(followers)}); err != nil || public != 0 {
			t.Errorf("%d activities about groups are shown, %v", public, err)
		}
		return nil
	})
}

func TestANoteToAGroupReachesItsMembersUnnamed(t *testing.T) {
	t.Parallel()
	d := town(t)
	neighbour := d.Local.ID(d.user("erin"))
	friends := d.group("friends", bob, carol, string(neighbour))
	all := []string{string(neighbour) + "/inbox", bob + "/inbox", carol + "/inbox"}
	r, err := d.dispatch("CreateNote", map[string]any{"content": "psst", "to": []string{string(friends)}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Job.Recipients != 3 || r.Job.Counts.Total != 3 {
		t.Errorf("the job is %+v, want three recipients", r.Job)
	}
	rows := d.owed()
	if diff := cmp.Diff(all, inboxes(rows)); diff != "" {
		t.Error("Create, want personal inboxes: ", diff)
	}
	for _, row := range rows {
		if row.Host == "" != (row.Inbox == neighbour+"/inbox") {
			t.Errorf("the delivery to %s has the host %q", row.Inbox, row.Host)
		}
		for _, hidden := range []string{string(friends), "groups", "friends", bob, carol, string(neighbour), followers, public, `"bto"`, `"bcc"`} {
			if strings.Contains(string(row.Body), hidden) {
				t.Errorf("%q is told to everybody: %s", hidden, row.Body)
			}
		}
	}
	a, err := vocab.ParseActivity(rows[0].Body)
	if err != nil || !slices.Equal(a.To, []vocab.ID{me}) || !slices.Equal(ids(t, a.Object.Doc, "to"), []vocab.ID{me}) {
		t.Errorf("addressed to %v, %v; want nobody but alice", a.To, err)
	}
	var audience string
	err = dbtest.SQL(t, d.c, d.alice).QueryRowContext(t.Context(), `SELECT array_to_string(audience, ' ') FROM delivery_jobs WHERE activity_uri = $1`, r.ActivityID).Scan(&audience)
	if err != nil || audience != string(me)+" "+string(friends) {
		t.Errorf("the job's audience is %q, %v; want the group too", audience, err)
	}

	note := a.Object.ID
	d.must("RemoveFromGroup", map[string]any{"name": "friends", "actorUri": carol})
	d.must("UpdateObject", map[string]any{"objectId": note, "content": "psssst"})
	if diff := cmp.Diff([]string{string(neighbour) + "/inbox", bob + "/inbox"}, inboxes(d.owed())); diff != "" {
		t.Error("Update, want who is in the group still: ", diff)
	}
	answer := d.must("Reply", map[string]any{"objectId": note, "content": "and another thing"})
	if diff := cmp.Diff([]string{string(neighbour) + "/inbox", bob + "/inbox"}, inboxes(d.owed())); diff != "" {
		t.Error("an answer of alice's own, want who is in the group: ", diff)
	}
	d.must("Block", map[string]any{"actorUri": bob})
	d.owed()
	d.must("UpdateObject", map[string]any{"objectId": answer.Object, "content": "never mind"})
	if diff := cmp.Diff([]string{string(neighbour) + "/inbox"}, inboxes(d.owed())); diff != "" {
		t.Error("Update after a block: ", diff)
	}
	d.refused("AddToGroup", map[string]any{"name": "friends", "actorUri": bob}, fault.Conflict, "blocked")
	d.must("DeleteGroup", map[string]any{"name": "friends"})
	d.must("UpdateObject", map[string]any{"objectId": note, "content": "p"})
	if got := inboxes(d.owed()); len(got) != 0 {
		t.Errorf("Update after the group is gone goes to %q", got)
	}
	d.exec(`DELETE FROM delivery_jobs`) // as pruning does; the recipients are unknown afterwards
	d.must("DeleteObject", map[string]any{"objectId": note})
	if diff := cmp.Diff(all, inboxes(d.owed())); diff != "" {
		t.Error("Delete, want who had it: ", diff)
	}
}

func TestAGroupBesideOthers(t *testing.T) {
	t.Parallel()
	d := town(t)
	friends, family := string(d.group("friends", bob, dan)), string(d.group("family", bob))
	for _, c := range []struct {
		name    string
		params  map[string]any
		to, cc  []vocab.ID
		inboxes []string
	}{
		{"two groups", map[string]any{"to": []string{friends}, "cc": []string{family, friends}}, []vocab.ID{me}, nil, []string{bob + "/inbox", dan + "/inbox"}},
		{"and an actor", map[string]any{"to": []string{friends, carol}}, []vocab.ID{carol}, nil, []string{bob + "/inbox", carol + "/inbox", dan + "/inbox"}},
		{"and a member", map[string]any{"to": []string{family, bob}, "visibility": "direct"}, []vocab.ID{bob}, nil, []string{bob + "/inbox"}},
		{"and followers", map[string]any{"to": []string{followers, friends}}, []vocab.ID{vocab.ID(followers)}, nil, []string{"https://p.example/inbox", bob + "/inbox", dan + "/inbox"}},
		{"and everybody", map[string]any{"to": []string{public}, "cc": []string{family}}, []vocab.ID{vocab.Public}, []vocab.ID{vocab.ID(followers)}, []string{"https://p.example/inbox", bob + "/inbox", dan + "/inbox"}},
	} {
		c.params["content"] = c.name
		a := d.must("CreateNote", c.params)
		if diff := cmp.Diff(c.inboxes, inboxes(d.owed())); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		doc := mustDoc(t, a.Raw)
		if to, cc := ids(t, doc, "to"), ids(t, doc, "cc"); !slices.Equal(to, c.to) || !slices.Equal(cc, c.cc) {
			t.Errorf("%s: to %v cc %v, want %v and %v", c.name, to, cc, c.to, c.cc)
		}
	}
	d.refused("CreateNote", map[string]any{"content": "x", "to": []string{friends}, "visibility": "public"}, fault.Unprocessable, "invalid_parameter")
	d.refused("CreateNote", map[string]any{"content": "x", "to": []string{string(d.group("empty"))}}, fault.Unprocessable, "invalid_parameter")
}

func TestWhoLeavesAGroupWhileOthersAreAskedIsNotReached(t *testing.T) {
	t.Parallel()
	d := town(t)
	friends := string(d.group("friends", bob, carol, dan))
	d.world.objectAsked = func() {
		d.must("Block", map[string]any{"actorUri": carol})
		d.must("RemoveFromGroup", map[string]any{"name": "friends", "actorUri": dan})
		d.owed()
	}
	d.must("CreateNote", map[string]any{"content": "look", "visibility": "direct", "to": []string{friends}, "inReplyTo": bobsPost})
	if diff := cmp.Diff([]string{bob + "/inbox"}, inboxes(d.owed())); diff != "" {
		t.Error(diff)
	}
}

func TestActorsLeaveGroupsUnderAnySpellingOfTheirIDs(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.group("friends", bob, carol)
	down := fault.New(fault.Unavailable, "down")
	d.world.fails = map[vocab.ID]error{bob: down, carol: down}
	for _, id := range []string{bob, carol} {
		d.world.fails[vocab.ID(strings.Replace(id, "https://p.example", "HTTPS://P.example:443", 1))] = down
	}
	d.must("Block", map[string]any{"actorUri": "HTTPS://P.example:443/users/bob"})
	if got := d.groups()[0].Members; !slices.Equal(got, []vocab.ID{carol}) {
		t.Errorf("after bob is blocked the members are %q", got)
	}
	d.must("RemoveFromGroup", map[string]any{"name": "friends", "actorUri": "HTTPS://P.example:443/users/carol"})
	if got := d.groups()[0].Members; len(got) != 0 {
		t.Errorf("after carol is taken out the members are %q", got)
	}
}

func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	d := town(t)
	d.group("full", bob)
	d.exec(`INSERT INTO group_members (group_id, actor_uri, activity_uri) SELECT id, 'https://x.example/' || n, '' FROM groups, generate_series(2, 500) n`)
	d.refused("AddToGroup", map[string]any{"name": "full", "actorUri": carol}, fault.Conflict, "too_many_members")
	d.must("AddToGroup", map[string]any{"name": "full", "actorUri": bob})
	d.exec(`INSERT INTO groups (id, name, uri, activity_uri) SELECT gen_random_uuid(), n, n, '' FROM generate_series(2, 100) n`)
	d.refused("CreateGroup", map[string]any{"name": "one-more"}, fault.Conflict, "too_many_groups")
	d.must("CreateGroup", map[string]any{"name": "full"})
}

// exec changes alice's database without using the engine.
func (d *desk) exec(statement string) {
	d.t.Helper()
	if _, err := dbtest.SQL(d.t, d.c, d.alice).ExecContext(d.t.Context(), statement); err != nil {
		d.t.Fatalf("%s: %v", statement, err)
	}
}

func ids(t *testing.T, d vocab.Doc, name string) []vocab.ID {
	t.Helper()
	found, err := d.IDs(name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
