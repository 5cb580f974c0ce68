package inbox_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The three users relate differently to carol: fan follows her, carol follows idol, and other has
// no relationship with her.
func TestAddressing(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	users := map[string]*peertest.Scene{}
	first := stage.Scene(t)
	for _, name := range []string{"fan", "idol", "other"} {
		users[name] = first.With(name)
	}
	users["fan"].Act("p:/carol", `{"id":"us:/alice/activities/f","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)
	users["fan"].MustSend("p:/carol", mine, `{"id":"p:/accepts/fan","type":"Accept","actor":"p:/carol","object":"us:/alice/activities/f"}`)
	first.MustSend("p:/carol", shared, `{"id":"p:/notes/0/create","type":"Create","actor":"p:/carol","to":"as:Public","object":{"id":"p:/notes/0","type":"Note"}}`)
	users["idol"].MustSend("p:/carol", mine, `{"id":"p:/follows/idol","type":"Follow","actor":"p:/carol","object":"us:/alice"}`)
	users["other"].Posts("us:/alice/objects/1", "as:Public")

	const (
		others = "us:/users/other/inbox"
		song   = `"type":"Listen","object":"p:/songs/1"`
	)
	tests := []struct {
		name, inbox, activity string
		want                  string // the users who store it
	}{
		{"shared, to everybody", shared, song + `,"to":"https://www.w3.org/ns/activitystreams#Public"`, "fan"},
		{"PRV-08 shared, to as:Public", shared, song + `,"to":"as:Public"`, "fan"},
		{"PRV-08 shared, cc Public", shared, song + `,"cc":["Public"]`, "fan"},
		{"shared, to followers", shared, song + `,"to":"p:/carol/followers"`, "fan"},
		{"shared, audience followers", shared, song + `,"audience":"p:/carol/followers"`, "fan"},
		{"shared, audience everybody is not public", shared, song + `,"audience":"as:Public"`, ""},
		{"PRV-08 shared, bto everybody is not public", shared, song + `,"bto":"as:Public"`, ""},
		{"shared, to nobody", shared, song, ""},
		{"shared, to", shared, song + `,"to":"us:/users/other"`, "other"},
		{"shared, cc", shared, song + `,"cc":["us:/users/other"]`, "other"},
		{"shared, audience", shared, song + `,"audience":"us:/users/other"`, "other"},
		{"shared, bto", shared, song + `,"bto":"us:/users/other"`, "other"},
		{"shared, bcc", shared, song + `,"bcc":["us:/users/other"]`, "other"},
		{"shared, to several", shared, song + `,"to":["us:/users/other","us:/users/idol","us:/users/nobody","p:/dave"]`, "idol other"},
		{"shared, to a user's followers", shared, song + `,"to":"us:/users/fan/followers"`, ""},
		{"PRV-07 shared, to a user's group", shared, song + `,"to":"us:/users/fan/groups/0190a1b2-0000-7000-8000-000000000000"`, ""},
		{"shared, to another one's followers", shared, song + `,"to":"p:/dave/followers"`, ""},
		{"personal, to nobody", others, song, "other"},
		{"personal, to everybody", others, song + `,"to":"as:Public"`, "other"},
		{"personal, to followers", others, song + `,"to":"p:/carol/followers"`, "other"},
		{"personal, to another user", others, song + `,"to":"us:/users/idol"`, "idol other"},
		{"personal, cc another user", others, song + `,"cc":"us:/users/idol"`, "idol other"},
		{"personal, audience another user", others, song + `,"audience":"us:/users/idol"`, "idol other"},
		{"personal, bto another user", others, song + `,"bto":"us:/users/idol"`, "other"},
		{"personal, bcc another user", others, song + `,"bcc":"us:/users/idol"`, "other"},
		{"shared, a Follow", shared, `"type":"Follow","object":"us:/users/other"`, "other"},
		{"shared, a Like", shared, `"type":"Like","object":"us:/users/other/objects/1"`, "other"},
		{"IN-23 shared, an Announce to nobody", shared, `"type":"Announce","object":"us:/users/other/objects/1"`, "fan other"},
		{"shared, an Announce to everybody", shared, `"type":"Announce","to":"as:Public","object":"us:/users/other/objects/1"`, "fan other"},
		{"shared, a reply", shared, `"type":"Create","to":"as:Public","object":{"id":"p:/notes/9","type":"Note","inReplyTo":"us:/users/other/objects/1"}`, "fan other"},
		{"shared, an Accept of what nobody asked", shared, `"type":"Accept","object":"us:/users/other/activities/1"`, ""},
		{"shared, an Undo", shared, `"type":"Undo","object":"p:/follows/idol"`, "idol"},
		{"shared, a Block", shared, `"type":"Block","object":"us:/users/other"`, "other"},
		{"shared, a Block of somebody else", shared, `"type":"Block","object":"q:/eve"`, ""},
		{"shared, an Add to a user's collection", shared, `"type":"Add","object":"p:/carol","target":"us:/users/other/followers"`, ""},
		{"shared, an Update", shared, `"type":"Update","object":{"id":"p:/notes/0","type":"Note","content":"new"}`, "fan"},
		{"shared, a Delete", shared, `"type":"Delete","object":"p:/notes/0"`, "fan"},
		{"personal to one, a Delete of what another one has", others, `"type":"Delete","object":"p:/notes/9"`, "fan other"},
	}
	for n, tt := range tests {
		id := fmt.Sprintf("p:/activities/%d", n)
		first.MustSend("p:/carol", tt.inbox, fmt.Sprintf(`{"id":"%s","actor":"p:/carol",%s}`, id, tt.activity))
		var got []string
		for name, s := range users {
			if len(s.Column(t, s.Alice, `SELECT uri FROM activities WHERE uri = $1`, string(s.ID(id)))) > 0 {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: stored by %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The shared inbox finds no user for an activity. alice's own inbox may still accept it for her.
func TestTheSharedInboxDoesNotTakeWhatComesToAUser(t *testing.T) {
	s := newScene(t)
	body := strings.Replace(listen, `"object"`, `"to":["us:/alice/followers"],"object"`, 1) // it names alice's followers, not alice
	expect(t, s, nil, accepted, func() error { return s.Send("p:/carol", shared, body) })
	expect(t, s, listened, accepted, func() error { return s.Send("p:/carol", mine, body) })
}

// After any sequence of activities, the acquaintances list every user who holds anything of an
// actor.
func TestAcquaintancesNeverSayTooLittle(t *testing.T) {
	t.Parallel()
	first := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	users := []*peertest.Scene{first, first.With("bob")}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for n := range 20 {
		first.Serve(fmt.Sprintf("q:/notes/%d", n), fmt.Sprintf(`{"id":"q:/notes/%d","type":"Note","attributedTo":"q:/eve","to":"as:Public"}`, n))
	}
	for n := range 150 {
		s := users[random.IntN(len(users))]
		from := pick("p:/carol", "p:/dave", "q:/mallory")
		peer, i := from[:2], random.IntN(20)
		activity := pick(
			`"type":"Follow","object":"us:/alice"`,
			fmt.Sprintf(`"type":"Create","to":["us:/alice","as:Public"],"object":{"id":"%s/notes/%d","type":"Note","attributedTo":"%s"}`, from, i, from),
			fmt.Sprintf(`"type":"Announce","cc":"us:/alice","object":"q:/notes/%d"`, i),
			fmt.Sprintf(`"type":"Update","object":{"id":"%s/notes/%d","type":"Note","content":"%d"}`, from, i, n),
			fmt.Sprintf(`"type":"Delete","object":"%s/notes/%d"`, from, i),
			fmt.Sprintf(`"type":"Undo","object":{"id":"%s/ids/%d","type":"Announce"}`, peer, random.IntN(n+1)),
			`"type":"Listen","to":"us:/alice"`,
			fmt.Sprintf(`"type":"Delete","object":"%s"`, pick(from, from, from+"/notes/1")),
		)
		s.MustSend(from, pick(mine, shared), fmt.Sprintf(`{"id":"%s/ids/%d","actor":"%s",%s}`, peer, n, from, activity))
		if strings.HasSuffix(activity, `"`+from+`"`) {
			first.Later(25 * time.Hour) // until the cached copy expires: carol's server still shows the actor that deleted itself
		}
	}
	held := 0
	for _, s := range users {
		for _, a := range s.Column(t, s.Alice, `SELECT DISTINCT actor_uri FROM activities WHERE direction = 'inbound' UNION SELECT actor_uri FROM relationships
			UNION SELECT actor_uri FROM reactions UNION SELECT raw ->> 'attributedTo' FROM objects WHERE deleted_at IS NULL UNION SELECT uri FROM actors`) {
			held++
			known, err := s.Store.Instance.Acquaintances.Users(t.Context(), vocab.ID(a), false)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(known, s.Alice) {
				t.Errorf("%s holds something of %s, who is acquainted with %s only", s.Alice, a, known)
			}
		}
	}
	if held < 4 {
		t.Errorf("the users hold something of %d actors, want more for this to prove anything", held)
	}
}
