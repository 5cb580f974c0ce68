package registry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

// listLeaves returns keys of a document: those that are members, and those that have no object
// below them.
func listLeaves(prefix string, doc map[string]any) (keys []string) {
	for name, value := range doc {
		isMember := slices.ContainsFunc(Members(), func(m Member) bool { return m.Key == prefix+name })
		if below, is := value.(map[string]any); is && !isMember {
			keys = append(keys, listLeaves(prefix+name+".", below)...)
		} else {
			keys = append(keys, prefix+name)
		}
	}
	return keys
}

func TestTheExampleHasEveryMemberAndItsDefault(t *testing.T) {
	t.Parallel()
	example, err := ExampleUser()
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(example, &doc); err != nil {
		t.Fatal(err)
	}
	got, want := listLeaves("", doc), []string{}
	for _, m := range Members() {
		want = append(want, m.Key)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the example has %q, described are %q", got, want)
	}
	if c, err := decodeUser(example); err != nil || c.FollowPolicy != DefaultUser().FollowPolicy {
		t.Errorf("the example is read as %+v, %v", c, err)
	}
}

func TestAMemberIsSetAsAPersonWritesIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	alice := username(t, "alice")
	if err := f.CreateUser(alice); err != nil {
		t.Fatal(err)
	}
	// want is "" if the value is accepted
	for _, tt := range []struct{ key, value, want string }{
		{"profile.name", `"Alice" <3`, ""},
		{"profile.summary", "two\nlines", ""},
		{"profile.icon", "https://example.org/a.png", ""},
		{"profile.icon", "", ""},
		{"profile.fields", `[{"name":"Home","value":"https://example.org"}]`, ""},
		{"discoverable", "true", ""},
		{"languages", `["de","en"]`, ""},
		{"follow_policy", "approval_required", ""},
		{"permissions.see_presence", `{"any":["friendOf"]}`, ""},
		{"permissions.see_presence", `{"any":["friendOf"],"all":["following"]}`, "permissions.see_presence has any and all"},
		{"permissions.see_presence", `{"any":["enemyOf"]}`, `"enemyOf" is none of following, follower, friendOf and closeFriendOf`},
		{"permissions.see_presence", `{"some":["friendOf"]}`, `unknown key "some"`},
		{"permissions.see_presence", `["friendOf"]`, "must be an object"},
		{"permissions", `{}`, "permissions holds several members"},
		{"moderation.muted_actors", `["https://p.example/users/bob"]`, ""},
		{"moderation.muted_domains", `["evil.example"]`, ""},
		{"moderation.muted_keywords", `["cat","big deal"]`, ""},
		{"moderation.muted_actors", `["@bob@p.example"]`, "moderation.muted_actors[0]"},
		{"moderation.muted_domains", `["https://evil.example/"]`, "moderation.muted_domains[0]"},
		{"moderation.muted_keywords", `[" "]`, "moderation.muted_keywords[0]"},
		{"moderation.muted_keywords", `["` + strings.Repeat("x", 101) + `"]`, "1 to 100 are taken"},
		{"moderation.muted_keywords", `["x"` + strings.Repeat(`,"x"`, 200) + `]`, "at most 200"},
		{"discoverable", "yes", `discoverable: "yes" is neither true nor false`},
		{"languages", "de", "languages: line 1 column 1: invalid character 'd'"},
		{"profile.fields", `[{"nmae":"x"}]`, `did you mean "name"?`},
		{"profile.fields", `[{"value":"x"}]`, "profile.fields[0].name has 0 characters"},
		{"profile.nmae", "x", `there is no member "profile.nmae"`},
		{"profile.name.first", "x", "there is no member"},
		{"", "x", "there is no member"},
		{"profile", "{}", "profile holds several members"},
		{"profile.icon", "a.png", "is not the address of a picture"},
	} {
		before := f.User(alice)
		err := f.SetMember(alice, tt.key, tt.value)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("set %s %q: %v", tt.key, tt.value, err)
		case tt.want != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("set %s %q: %v, want fault.Invalid with %q", tt.key, tt.value, err, tt.want)
		case tt.want != "" && f.User(alice).Profile.Name != before.Profile.Name:
			t.Errorf("set %s %q changed the file", tt.key, tt.value)
		}
	}
	c := f.User(alice)
	if c.Profile.Name != `"Alice" <3` || c.Profile.Summary != "two\nlines" || c.Profile.Icon != "" || len(c.Profile.Fields) != 1 || !c.Discoverable ||
		!slices.Equal(c.Languages, []string{"de", "en"}) || c.FollowPolicy != ApprovalRequired {
		t.Errorf("the file holds %+v", c)
	}
	if v, err := c.Value("profile.fields"); err != nil || len(v.([]Field)) != 1 {
		t.Errorf("Value = %v, %v", v, err)
	}
}

func TestARefusedChangePointsIntoTheFile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	err := f.UpdateUser(username(t, "alice"), func(c *User) error {
		c.Profile.Fields = []Field{{Name: "a"}, {}}
		return nil
	})
	if e := fault.Of(err); e == nil || e.Kind != fault.Invalid || e.Pointer != "/profile/fields/1/name" {
		t.Errorf("got %+v, want the place of the name", err)
	}
}

func TestWordsOfAPersonTakeThePlaceOfThoseThatWereRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	alice := username(t, "alice")
	path := filepath.Join(f.dir, "users", "alice", "config.json")
	holds := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("the file is %q, %v, want %q", got, err, want)
		}
	}
	const mine, theirs = `{ "profile" : {"name":"Alice"} }`, `{"discoverable":true}`
	if before, err := f.ReadUser(alice); err != nil || before != nil {
		t.Errorf("no file is read as %q, %v", before, err)
	}
	if err := f.ReplaceUser(alice, nil, []byte(mine)); err != nil {
		t.Fatal(err)
	}
	holds(mine)
	if f.User(alice).Profile.Name != "Alice" {
		t.Error("the new file is not followed")
	}
	for _, broken := range []string{``, " \n", `{"profil":{}}`, `{`} {
		if err := f.ReplaceUser(alice, []byte(mine), []byte(broken)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v, want fault.Invalid", broken, err)
		}
	}
	if err := f.ReplaceUser(alice, []byte(theirs), []byte(theirs)); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a file that changed: %v, want fault.Conflict", err)
	}
	holds(mine)
	if err := os.WriteFile(path, []byte(`{"broken`), 0o600); err != nil {
		t.Fatal(err)
	}
	if before, err := f.ReadUser(alice); err != nil || string(before) != `{"broken` {
		t.Errorf("a broken file is read as %q, %v", before, err)
	}
	if err := f.ReplaceUser(alice, []byte(`{"broken`), []byte(theirs)); err != nil {
		t.Errorf("a broken file is not mended: %v", err)
	}
	holds(theirs)
}
