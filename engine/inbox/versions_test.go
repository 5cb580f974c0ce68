package inbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// All edits come under one id. Each newer edit still takes effect. Friendica and Mobilizon send
// edits this way.
func TestEditsUnderOneIDTakeEffectInTurn(t *testing.T) {
	s := newScene(t)
	s.MustSend("p:/carol", mine, `{"id":"p:/notes/1/Create","type":"Create","actor":"p:/carol","to":"us:/alice","object":`+version("first", "")+`}`)
	edit := func(content, updated string) string {
		return `{"id":"p:/notes/1/Update","type":"Update","actor":"p:/carol","to":"us:/alice","object":` + version(content, updated) + `}`
	}
	for _, c := range []struct{ sent, updated, want string }{
		{"second", "2026-01-02T00:00:00Z", "second"},
		{"third", "2026-01-03T00:00:00Z", "third"},
		{"second", "2026-01-02T00:00:00Z", "third"},
		{"other words of the same time", "2026-01-03T00:00:00Z", "third"},
		{"an older version that never came", "2026-01-02T12:00:00Z", "third"},
		{"no time", "", "third"},
		{"fourth", "2026-01-04T00:00:00Z", "fourth"},
	} {
		s.MustSend("p:/carol", mine, edit(c.sent, c.updated))
		if got := contents(t, s); !slices.Equal(got, []string{c.want}) {
			t.Errorf("after %q of %q alice holds %q, want %q", c.sent, c.updated, got, c.want)
		}
	}
	if got := s.Column(t, s.Alice, `SELECT uri FROM activities WHERE type = 'Update'`); len(got) != 1 {
		t.Errorf("activities: %q, want one Update", got)
	}
	if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox WHERE type = 'request.received' AND payload ->> 'activityType' = 'Update'`); len(got) != 3 {
		t.Errorf("%d events tell of an edit, want one for each that took effect", len(got))
	}
}

func version(content, updated string) string {
	if updated != "" {
		updated = fmt.Sprintf(`,"updated":%q`, updated)
	}
	return fmt.Sprintf(`{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","to":"us:/alice","content":%q,"published":"2026-01-01T00:00:00Z"%s,"tag":{"type":"Mention","href":"us:/alice"}}`, content, updated)
}

// Two edits under one id both wait in the journal while alice's database does not answer.
func TestEditsUnderOneIDWaitBesideEachOther(t *testing.T) {
	alice, _ := two(t)
	alice.MustSend("p:/dave", mine, asDave(`{"id":"p:/notes/1/Create","type":"Create","actor":"p:/carol","to":"us:/alice","object":`+version("first", "")+`}`))
	alice.Down(t, alice.Alice)
	for n, content := range []string{"second", "third"} {
		body := asDave(fmt.Sprintf(`{"id":"p:/notes/1/Update","type":"Update","actor":"p:/carol","to":"us:/alice","object":%s}`, version(content, fmt.Sprintf("2026-01-0%dT00:00:00Z", n+2))))
		if err := take(t.Context(), alice, mine, body); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both wait in the journal", func() bool { return journal(t, alice).Waiting == 2 })
	if w, err := alice.Store.Instance.Journal.Find(t.Context(), alice.ID("p:/notes/1/Update")); err != nil || w == nil || len(w.Users) != 2 {
		t.Errorf("by their id %+v is found, %v; want both", w, err)
	}
	alice.Up(t, alice.Alice)
	edited(t, alice, "third")
}

// An administrator can retry an edit that was set aside, even if another edit under the same id
// took effect.
func TestAnEditThatWasSetAsideIsGivenBackBesideAnother(t *testing.T) {
	s := newScene(t)
	edit := func(content, updated string) string {
		return `{"id":"p:/notes/1/Update","type":"Update","actor":"p:/carol","to":"us:/alice","object":` + version(content, updated) + `}`
	}
	s.MustSend("p:/carol", mine, `{"id":"p:/notes/1/Create","type":"Create","actor":"p:/carol","to":"us:/alice","object":`+version("first", "")+`}`)
	s.MustSend("p:/carol", mine, edit("second", "2026-01-02T00:00:00Z"))
	alter := func(how string) {
		if _, err := s.DB(t, s.Alice).ExecContext(t.Context(), `ALTER TABLE objects `+how); err != nil {
			t.Fatal(err)
		}
	}
	alter(`ADD CONSTRAINT ill CHECK (raw ->> 'content' <> 'third') NOT VALID`)
	for range 2 { // the second arrival is a duplicate
		s.MustSend("p:/carol", mine, edit("third", "2026-01-03T00:00:00Z"))
	}
	aside := poisoned(t, s)
	if len(aside) != 1 {
		t.Fatalf("set aside: %+v, want the third", aside)
	}
	alter(`DROP CONSTRAINT ill`)
	s.MustSend("p:/carol", mine, edit("fourth", "2026-01-04T00:00:00Z"))
	if err := s.Inbox.Retry(t.Context(), s.Alice, aside[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Inbox.Tend(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the journal is empty", func() bool { return journal(t, s).Waiting == 0 })
	if got := contents(t, s); !slices.Equal(got, []string{"fourth"}) {
		t.Errorf("alice holds %q, want the fourth", got)
	}
	if got := s.Column(t, s.Alice, `SELECT uri FROM activities WHERE type = 'Update'`); len(got) != 1 {
		t.Errorf("activities: %q, want one Update", got)
	}
}

// The Delete of a post has the id of the post's Create, and still takes effect. BookWyrm sends
// Deletes this way.
func TestADeleteUnderTheIDOfItsCreateTakesEffect(t *testing.T) {
	t.Parallel()
	create := `{"id":"p:/notes/1/activity","type":"Create","actor":"p:/carol","to":"us:/alice","object":` + version("first", "") + `}`
	remove := `{"id":"p:/notes/1/activity","type":"Delete","actor":"p:/carol","to":"us:/alice","object":{"id":"p:/notes/1","type":"Tombstone"}}`
	for name, sent := range map[string][]string{"in order": {create, remove, remove, create}, "the Delete first": {remove, create}} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			for _, body := range sent {
				s.MustSend("p:/carol", mine, body)
			}
			if got := contents(t, s); len(got) != 0 {
				t.Errorf("alice holds %q", got)
			}
		})
	}
}

// A post and its Delete under one id both wait in the journal while alice's database does not
// answer.
func TestADeleteUnderTheIDOfItsCreateWaitsBesideIt(t *testing.T) {
	alice, _ := two(t)
	alice.Down(t, alice.Alice)
	for _, body := range []string{
		`{"id":"p:/notes/1/activity","type":"Create","actor":"p:/carol","to":"us:/alice","object":` + version("first", "") + `}`,
		`{"id":"p:/notes/1/activity","type":"Delete","actor":"p:/carol","to":"us:/alice","object":{"id":"p:/notes/1","type":"Tombstone"}}`,
	} {
		if err := take(t.Context(), alice, mine, asDave(body)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "both wait in the journal", func() bool { return journal(t, alice).Waiting == 2 })
	alice.Up(t, alice.Alice)
	eventually(t, "the journal is empty", func() bool { return journal(t, alice).Waiting == 0 })
	if got := alice.Column(t, alice.Alice, `SELECT raw ->> 'content' FROM objects WHERE raw ->> 'type' = 'Note'`); len(got) != 0 {
		t.Errorf("alice holds %q", got)
	}
}

// An Accept has the id of an earlier Accept, and still answers the next Follow. Hubzilla derives
// the id from the contact, so all its answers to a contact have the same id.
func TestAnAnswerUnderAnIDOfBeforeAnswersTheNextFollow(t *testing.T) {
	s := newScene(t)
	for n := range 2 {
		follow := fmt.Sprintf("us:/alice/activities/f%d", n)
		s.Act("p:/carol", `{"id":"`+follow+`","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)
		for _, object := range []string{`"` + follow + `"`, `{"id":"` + follow + `","type":"Follow","actor":"us:/alice","object":"p:/carol"}`} {
			s.MustSend("p:/carol", mine, `{"id":"p:/follow/1#accept","type":"Accept","actor":"p:/carol","to":"us:/alice","object":`+object+`}`)
		}
		if got := s.Column(t, s.Alice, `SELECT status FROM relationships WHERE type = 'following'`); !slices.Equal(got, []string{"accepted"}) {
			t.Errorf("after the Accept of Follow %d the follow is %q", n, got)
		}
		s.MustSend("p:/carol", "us:/inbox", fmt.Sprintf(`{"id":"p:/notes/%d/activity","type":"Create","actor":"p:/carol","to":"p:/carol/followers","object":{"id":"p:/notes/%[1]d","type":"Note","attributedTo":"p:/carol","to":"p:/carol/followers","content":"%[1]d"}}`, n))
		s.Act("p:/carol", fmt.Sprintf(`{"id":"us:/alice/activities/u%d","type":"Undo","actor":"us:/alice","object":{"id":%q,"type":"Follow","actor":"us:/alice","object":"p:/carol"}}`, n, follow))
	}
	if got := contents(t, s); !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("alice holds %q, want a post of each follow", got)
	}
	if got := s.Column(t, s.Alice, `SELECT type FROM event_outbox WHERE type = 'accept.received'`); len(got) != 2 {
		t.Errorf("%d events tell of an Accept, want one for each Follow", len(got))
	}
}

// A Reject with the id of the earlier Accept ends the follow.
func TestARejectUnderTheIDOfTheAcceptEndsTheFollow(t *testing.T) {
	s := newScene(t)
	s.Act("p:/carol", `{"id":"us:/alice/activities/f","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)
	for _, answer := range []string{"Accept", "Reject"} {
		s.MustSend("p:/carol", mine, `{"id":"p:/follow/1#answer","type":"`+answer+`","actor":"p:/carol","to":"us:/alice","object":"us:/alice/activities/f"}`)
	}
	if got := s.Column(t, s.Alice, `SELECT status FROM relationships WHERE type = 'following'`); slices.Contains(got, "accepted") {
		t.Errorf("after the Reject the follow is %q", got)
	}
}

func asDave(body string) string { return strings.ReplaceAll(body, "p:/carol", "p:/dave") }

// All changes of an actor come under one id and without a time. Each change still takes effect.
// Takahē and Mobilizon send changes this way.
func TestAnActorChangesUnderOneIDAgainAndAgain(t *testing.T) {
	s := newScene(t)
	s.Act("p:/carol", `{"id":"us:/alice/activities/f","type":"Follow","actor":"us:/alice","object":"p:/carol"}`)
	shown := func() []string {
		return s.Column(t, s.Alice, `SELECT raw ->> 'name' FROM actors`)
	}
	carol := s.Actor("p:/carol")
	update := `{"id":"p:/carol#update","type":"Update","actor":"p:/carol","to":"us:/alice","object":"p:/carol"}`
	for _, name := range []string{"first", "second", "third"} {
		carol.Doc["name"] = name
		carol.Show()
		s.Later(10 * time.Minute)
		s.MustSend("p:/carol", mine, update)
		if got := shown(); !slices.Equal(got, []string{name}) {
			t.Errorf("alice's copy has the name %q, want %q", got, name)
		}
	}
	before := s.Asked("p:/carol")
	for range 50 {
		s.MustSend("p:/carol", mine, update)
	}
	if n := s.Asked("p:/carol") - before; n > 10 {
		t.Errorf("50 replays asked for the actor %d times, want as often as its budget allows", n)
	}
	if got := s.Column(t, s.Alice, `SELECT uri FROM activities WHERE type = 'Update'`); len(got) != 1 {
		t.Errorf("activities: %q, want one Update", got)
	}
}
