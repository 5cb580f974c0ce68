package outbox

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// told returns the digest of the profile that was last sent to other servers.
func (d *desk) told() []byte {
	d.t.Helper()
	told, err := d.c.Instance.Users.ToldProfiles(d.t.Context(), []vocab.Username{d.alice})
	if err != nil || len(told) != 1 {
		d.t.Fatalf("told of %v, %v", told, err)
	}
	return told[0].Digest
}

// relate makes alice follow an actor.
func (d *desk) relate(a *vocab.Actor) {
	d.t.Helper()
	now := d.Now()
	d.write(func(ctx context.Context, tx *user.Tx) error {
		if err := tx.Actors.Save(ctx, a, now); err != nil {
			return err
		}
		return tx.Relationships.Set(ctx, user.Relationship{Actor: a.ID, Type: user.Following, Status: user.Accepted, Activity: me + "/activities/f"}, now)
	})
}

func TestAProfileIsChangedAndToldToThoseWhoShowIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	bob, carol := d.world.person(t, "r.example", "bob", true), d.world.person(t, "s.example", "carol", false)
	d.world.person(t, "t.example", "stranger", false)
	d.befriend(bob, user.Accepted)
	d.relate(carol)
	update := d.must("UpdateProfile", map[string]any{"name": "Alice", "summary": "I like #cats", "icon": "https://img.example/a.png",
		"fields": []any{map[string]any{"name": "Home", "value": "https://alice.example/"}}})
	stored, err := vocab.ParseDoc(update.Raw)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Text("type") != vocab.Update || stored.Text("object") != string(me) {
		t.Errorf("stored is %s, want the id of the actor alone", update.Raw)
	}
	d.checkProof(stored)
	rows := d.owed()
	var inboxes []string
	for _, r := range rows {
		inboxes = append(inboxes, string(r.Inbox))
		sent, err := vocab.ParseDoc(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		d.checkProof(sent)
		o := sent.Sub("object")
		if sent.Text("id") != string(update.URI) || o.Text("id") != string(me) || o.Text("type") != "Person" || o.Text("name") != "Alice" ||
			!strings.Contains(o.Text("summary"), `href="`) || o.Sub("icon").Text("url") != "https://img.example/a.png" || o.Sub("publicKey") == nil || len(o.Subs("attachment")) != 1 {
			t.Errorf("sent is %s", r.Body)
		}
		for _, term := range []string{`"PropertyValue"`, `"manuallyApprovesFollowers"`, "multikey"} {
			context, _ := sent["@context"].([]any)
			if !bytes.Contains(vocab.Doc{"c": context}.JSON(), []byte(term)) {
				t.Errorf("the context of what is sent has no %s", term)
			}
		}
	}
	if got := strings.Join(inboxes, " "); got != "https://r.example/inbox https://s.example/users/carol/inbox" && got != "https://s.example/users/carol/inbox https://r.example/inbox" {
		t.Errorf("told at %q, want the follower and the followed", inboxes)
	}
	if !bytes.Equal(d.told(), d.Local.ProfileDigest(d.alice)) {
		t.Error("it is not noted of which profile others were told")
	}
	if got := d.files.User(d.alice).Profile; got.Name != "Alice" || got.Summary != "I like #cats" || len(got.Fields) != 1 {
		t.Errorf("the file holds %+v", got)
	}
	if types := d.events(); types[len(types)-1] != "update.sent" {
		t.Errorf("events %q", types)
	}

	// The name does not change, and an unchanged profile is not sent again.
	if again := d.must("UpdateProfile", map[string]any{"name": "Alice"}); again.URI != update.URI || len(d.owed()) != 0 {
		t.Errorf("the same profile is told again as %s", again.URI)
	}
	d.must("UpdateProfile", map[string]any{"icon": "", "fields": []any{}})
	if got := d.files.User(d.alice).Profile; got.Name != "Alice" || got.Icon != "" || len(got.Fields) != 0 {
		t.Errorf("the file holds %+v, want the name kept and the rest gone", got)
	}
	if len(d.owed()) != 2 {
		t.Error("the second change is not told")
	}
}

func TestAProfileThatIsNotTakenStaysAsItWas(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.must("UpdateProfile", map[string]any{"name": "Alice"})
	for _, tt := range []struct {
		params, at string
	}{
		{`{}`, "/params"},
		{`{"nmae":"x"}`, "/params/nmae"},
		{`{"name":7}`, "/params/name"},
		{`{"name":"` + strings.Repeat("x", 101) + `"}`, "/params/name"},
		{`{"name":"\u001b[31mred"}`, "/params/name"},
		{`{"summary":"` + strings.Repeat("x", 5001) + `"}`, "/params/summary"},
		{`{"icon":"a.png"}`, "/params/icon"},
		{`{"image":"javascript:alert(1)"}`, "/params/image"},
		{`{"name":"Mallory","fields":[{"name":"a"},{"value":"x"}]}`, "/params/fields/1/name"},
		{`{"name":"Mallory","fields":[{"name":"a","colour":"red"}]}`, "/params/fields/0/colour"},
		{`{"fields":"x"}`, "/params/fields"},
		{`{"fields":[` + strings.Repeat(`{"name":"a"},`, 16) + `{"name":"a"}]}`, "/params/fields"},
	} {
		_, err := d.dispatch("UpdateProfile", tt.params)
		if e := fault.Of(err); e == nil || e.Kind != fault.Unprocessable || e.Code != "invalid_parameter" || e.Pointer != tt.at {
			t.Errorf("%.60s: %+v, want invalid_parameter at %s", tt.params, e, tt.at)
		}
	}
	if got := d.files.User(d.alice).Profile; got.Name != "Alice" || d.sent() != 1 {
		t.Errorf("the profile is %+v, with %d activities", got, d.sent())
	}
	if err := os.WriteFile(d.files.File(d.alice), []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := d.dispatch("UpdateProfile", `{"name":"Mallory"}`)
	if e := fault.Of(err); e == nil || e.Kind != fault.Conflict || e.Code != "broken_configuration" {
		t.Errorf("with a broken file: %+v", e)
	}
	if got, err := os.ReadFile(d.files.File(d.alice)); err != nil || string(got) != `{` {
		t.Errorf("the broken file is %q now, %v", got, err)
	}
}

// A profile was changed by hand, or was written before a crash. The engine sends it.
func TestTheEngineTellsOfAProfile(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.befriend(d.world.person(t, "r.example", "bob", true), user.Accepted)
	if err := d.files.SetMember(d.alice, "profile.name", "Alice"); err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := d.TellProfile(t.Context(), d.alice); err != nil {
			t.Fatal(err)
		}
		if got := len(d.owed()); got != 1-n {
			t.Errorf("time %d: told %d inboxes", n, got)
		}
	}
	audits := d.audits()
	if last := audits[len(audits)-1]; last.Action != "UpdateProfile" || last.Outcome != "ok" {
		t.Errorf("audited %+v", last)
	}
}

// Handles in a summary become links to their actors, who are not notified. Unknown handles are not
// linked, and the answer lists them.
func TestHandlesInASummaryAreLinked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	bob := d.world.person(t, "r.example", "bob", true)
	d.world.person(t, "s.example", "carol", false)
	link := func(a vocab.ID, handle string) string {
		return `<a href="` + string(a) + `" class="u-url mention">` + handle + `</a>`
	}
	summary := func() string {
		t.Helper()
		doc, err := d.Local.Document(d.alice)
		if err != nil {
			t.Fatal(err)
		}
		return doc.Text("summary")
	}
	r, err := d.dispatch("UpdateProfile", map[string]any{"summary": "With @Bob@R.example and @nobody@r.example: https://a.example/ #cats"})
	if err != nil {
		t.Fatal(err)
	}
	if got := summary(); !strings.Contains(got, link(bob.ID, "@Bob@R.example")) || !strings.Contains(got, `href="https://a.example/"`) || !strings.Contains(got, `rel="tag"`) || strings.Count(got, "<a ") != 3 {
		t.Errorf("the summary is %s", got)
	}
	if strings.Join(r.Unresolved, " ") != "@nobody@r.example" || len(d.owed()) != 0 {
		t.Errorf("%q lead nowhere", r.Unresolved)
	}

	// The handles of a summary that was edited by hand become links when the profile is sent.
	// The engine does not look up a known handle again.
	if err := d.files.SetMember(d.alice, "profile.summary", "With @bob@r.example and @carol@s.example"); err != nil {
		t.Fatal(err)
	}
	asked := d.world.asked
	if err := d.TellProfile(t.Context(), d.alice); err != nil {
		t.Fatal(err)
	}
	if got := summary(); !strings.Contains(got, link(bob.ID, "@bob@r.example")) || !strings.Contains(got, link("https://s.example/users/carol", "@carol@s.example")) || d.world.asked != asked+1 {
		t.Errorf("the summary is %s, after %d were asked for", got, d.world.asked-asked)
	}
	if !bytes.Equal(d.told(), d.Local.ProfileDigest(d.alice)) {
		t.Error("it is not noted of which profile others were told")
	}
}

// A user has just moved, and a program changes the user's profile. The engine still tells the
// followers of the move.
func TestAChangedProfileHidesNoMove(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.befriend(d.world.person(t, "r.example", "bob", true), user.Accepted)
	if err := d.files.SetMember(d.alice, "profile.moved_to", "https://new.example/users/alice"); err != nil {
		t.Fatal(err)
	}
	isTold := func() bool { return bytes.Equal(d.told(), d.Local.ProfileDigest(d.alice)) }
	d.must("UpdateProfile", map[string]any{"name": "Alice"})
	if isTold() {
		t.Error("nothing is left to be told, and no follower knows of the move")
	}
	if err := d.TellProfile(t.Context(), d.alice); err != nil {
		t.Fatal(err)
	}
	d.read(func(ctx context.Context, tx *user.Tx) error {
		move, err := tx.Activities.Latest(ctx, vocab.Move, me, me)
		if move == nil {
			t.Error("no follower is told of the move")
		}
		return err
	})
	for range 2 {
		if !isTold() {
			t.Error("others would be told of the move again")
		}
		d.must("UpdateProfile", map[string]any{"name": "Alice, moved"})
	}
}

// While the engine looks up the handles of a summary, the summary is changed. The new summary gets
// the links of its own handles.
func TestHandlesOfAnOlderSummaryTakeNoPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.world.person(t, "r.example", "bob", true)
	carol := d.world.person(t, "s.example", "carol", false)
	d.world.handleAsked = func() {
		d.world.handleAsked = nil
		d.must("UpdateProfile", map[string]any{"summary": "With @carol@s.example"})
	}
	d.must("UpdateProfile", map[string]any{"summary": "With @bob@r.example"})
	doc, err := d.Local.Document(d.alice)
	if err != nil || !strings.Contains(doc.Text("summary"), `href="`+string(carol.ID)+`"`) {
		t.Errorf("the summary is %s, %v", doc.Text("summary"), err)
	}
}
