package handler_test

import (
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

const community = "p:/c/beekeeping"

// lemmy returns a document of Lemmy from the test data. The community is on the peer p, and other
// actors are on the peer q.
func lemmy(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("../../testdata/activities/lemmy/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("https://lemmy.example/", "p:/", "https://other.example/", "q:/").Replace(string(raw))
}

// objectOf returns the object of the activity that is embedded in an Announce.
func objectOf(t *testing.T, body string) string {
	t.Helper()
	d, err := vocab.ParseDoc([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return string(d.Sub("object").Sub("object").JSON())
}

// moderates makes the actor of the community, and makes alice follow it.
func moderates(s *peertest.Scene) {
	makeGroup(s)
	s.Follows(community)
}

func makeGroup(s *peertest.Scene) {
	g := s.Actor(community)
	g.Doc["type"] = "Group"
	g.Show()
}

// TestWhatAGroupAnnounces sends Announces as Lemmy sends them. Each row has one Announce by the
// community, and the changes that it makes in alice's database.
func TestWhatAGroupAnnounces(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const (
		post    = "p:/post/5"
		comment = "q:/comment/7"
	)
	shows := func(name, file string) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.Serve(name, objectOf(t, lemmy(t, file))) }
	}
	sent := func(file string) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.MustSend(community, "us:/inbox", lemmy(t, file)) }
	}
	answers := func(name string, status int) func(*peertest.Scene) {
		return func(s *peertest.Scene) { s.Answer(name, status) }
	}
	hasPost := both(moderates, shows(post, "announce_create"), sent("announce_create"))
	hasComment := both(moderates, shows(comment, "announce_create_comment"), sent("announce_create_comment"))
	commented := []string{
		"+ object " + comment + " Note <p>Indeed</p>\n",
		"+ activity inbound Announce p:/activities/announce/c2 " + comment,
		"+ reaction " + community + " Announce " + comment + " p:/activities/announce/c2",
		"+ feed p:/activities/announce/c2 by " + community,
		"+ event announce.received p:/activities/announce/c2 " + comment + " by contact " + community}
	left := []string{
		"- activity inbound Announce p:/activities/announce/c2 " + comment,
		"- reaction " + community + " Announce " + comment + " p:/activities/announce/c2",
		"- feed p:/activities/announce/c2 by " + community}
	for _, r := range []struct {
		name    string
		given   func(*peertest.Scene)
		file    string
		replace []string // replacements in the document, as old and new texts by turns
		want    []string
		asked   string // the object that the engine must not fetch
	}{
		{name: "FE-21 the Create of a comment", given: both(moderates, shows(comment, "announce_create_comment")), file: "announce_create_comment", want: commented},
		{name: "the Create of a post", given: both(moderates, shows(post, "announce_create")), file: "announce_create", want: []string{
			"+ object p:/post/5 Page <p>It begins</p>\n", "+ activity inbound Announce p:/activities/announce/create/a1 p:/post/5",
			"+ reaction " + community + " Announce p:/post/5 p:/activities/announce/create/a1", "+ feed p:/activities/announce/create/a1 by " + community,
			"+ event announce.received p:/activities/announce/create/a1 p:/post/5 by contact " + community}},
		{name: "and the same post for those who know no groups", given: hasPost, file: "announce_page"},
		{name: "a Create as its server shows it", given: both(moderates, shows(comment, "announce_create_comment")), file: "announce_create_comment",
			replace: []string{"Indeed", "Forged"}, want: commented},
		{name: "a Create that its server does not show", given: moderates, file: "announce_create_comment"},
		{name: "a Create of somebody else's post", given: both(moderates, shows(comment, "announce_create_comment")), file: "announce_create_comment",
			replace: []string{`"actor": "q:/u/eve"`, `"actor": "q:/u/mallory"`}},
		{name: "a Create of something on a third server", given: both(moderates, shows(comment, "announce_create_comment")), file: "announce_create_comment",
			replace: []string{`"id": "q:/activities`, `"id": "p:/activities/x`, `"actor": "q:/u/eve"`, `"actor": "p:/u/eve"`}, asked: comment},
		{name: "a Create under an id of another server", given: both(moderates, shows(comment, "announce_create_comment")), file: "announce_create_comment",
			replace: []string{`"id": "q:/activities`, `"id": "p:/activities/x`}, asked: comment},
		{name: "a Create of what is not public", given: both(moderates, func(s *peertest.Scene) {
			s.Serve(comment, `{"id":"q:/comment/7","type":"Note","attributedTo":"q:/u/eve","to":"`+community+`"}`)
		}), file: "announce_create_comment"},
		{name: "by a group that alice does not follow", given: both(makeGroup, shows(comment, "announce_create_comment")), file: "announce_create_comment", asked: comment},
		{name: "by an actor that is no group", given: both(func(s *peertest.Scene) { s.Follows(community) }, shows(comment, "announce_create_comment")),
			file: "announce_create_comment", asked: comment},
		{name: "by a group of an actor that alice blocks", given: both(moderates, shows(comment, "announce_create_comment"), func(s *peertest.Scene) {
			s.Act("q:/u/eve", `{"id":"us:/alice/blocks/1","type":"Block","actor":"us:/alice","object":"q:/u/eve"}`)
		}), file: "announce_create_comment"},
		{name: "an Update", given: both(hasComment, shows(comment, "announce_update")), file: "announce_update", want: []string{
			"- object " + comment + " Note <p>Indeed</p>\n", "+ object " + comment + " Note <p>Indeed not</p>\n"}},
		{name: "an Update that its server does not show", given: hasComment, file: "announce_update"},
		{name: "an Update of what never came", given: both(moderates, shows(comment, "announce_update")), file: "announce_update"},
		{name: "a Delete that its server confirms", given: both(hasComment, answers(comment, http.StatusGone)), file: "announce_delete", want: []string{
			"- object " + comment + " Note <p>Indeed</p>\n", left[1], left[2], "+ object " + comment + " Tombstone", "+ tombstones 1"}},
		{name: "a Delete of a post that still stands takes it out of the group alone", given: hasComment, file: "announce_delete", want: left},
		{name: "a removal by a moderator", given: hasComment, file: "announce_remove", want: left},
		{name: "a Delete of what the group never showed", given: both(moderates, func(s *peertest.Scene) {
			s.Serve(comment, objectOf(t, lemmy(t, "announce_create_comment")))
			s.Actor("q:/u/eve")
			s.Follows("q:/u/eve")
			s.MustSend("q:/u/eve", "us:/inbox", `{"id":"q:/creates/9","type":"Create","actor":"q:/u/eve","to":"as:Public","object":`+objectOf(t, lemmy(t, "announce_create_comment"))+`}`)
		}), file: "announce_delete"},
		{name: "a Delete of alice's own post", given: both(moderates, posted("as:Public")), file: "announce_delete", replace: []string{comment, "us:/alice/objects/1"}},
		{name: "a Like", given: hasPost, file: "announce_like", want: []string{"+ reaction q:/u/eve Like p:/post/5 p:/activities/announce/l1"}, asked: "q:/u/eve"},
		{name: "a Dislike in its place", given: both(hasPost, sent("announce_like")), file: "announce_dislike", want: []string{
			"- reaction q:/u/eve Like p:/post/5 p:/activities/announce/l1", "+ reaction q:/u/eve Dislike p:/post/5 p:/activities/announce/l2"}},
		{name: "an Undo of a Like", given: both(hasPost, sent("announce_like")), file: "announce_undo_like", want: []string{"- reaction q:/u/eve Like p:/post/5 p:/activities/announce/l1"}},
		{name: "an Undo of another one's Like", given: both(hasPost, sent("announce_like")), file: "announce_undo_like",
			replace: []string{`"actor": "q:/u/eve",
    "to": [
      "as:Public"
    ],
    "object": {`, `"actor": "q:/u/mallory",
    "to": [
      "as:Public"
    ],
    "object": {`}},
		{name: "a Dislike in place of a Like that its actor sent", given: both(hasPost, likedByEve), file: "announce_dislike"},
		{name: "an Undo of a Like that its actor sent", given: both(hasPost, likedByEve), file: "announce_undo_like"},
		{name: "a Like of what is not the group's", given: both(moderates, posted("as:Public")), file: "announce_like", replace: []string{post, "us:/alice/objects/1"}},
		{name: "a Like of alice's post in the group", given: both(moderates, func(s *peertest.Scene) {
			s.Act("", `{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public","cc":"`+community+`","object":{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice","to":"as:Public","cc":"`+community+`","content":"mine"}}`)
		}), file: "announce_like", replace: []string{post, "us:/alice/objects/1"}, want: []string{
			"+ activity inbound Like p:/activities/announce/l1 us:/alice/objects/1", "+ reaction q:/u/eve Like us:/alice/objects/1 p:/activities/announce/l1"}},
		{name: "a Like in alice's name", given: hasPost, file: "announce_like", replace: []string{`"id": "q:/activities`, `"id": "us:/alice/activities`, "q:/u/eve", "us:/alice"}},
		{name: "an Undo of a Like in alice's name", given: both(hasPost, func(s *peertest.Scene) {
			s.Act("p:/u/dave", `{"id":"us:/alice/activities/l1","type":"Like","actor":"us:/alice","object":"`+post+`"}`)
		}), file: "announce_undo_like", replace: []string{`"id": "q:/activities`, `"id": "us:/alice/activities`, "q:/u/eve", "us:/alice"}},
		{name: "a Like of a blocked actor", given: both(hasPost, func(s *peertest.Scene) {
			s.Act("q:/u/eve", `{"id":"us:/alice/blocks/1","type":"Block","actor":"us:/alice","object":"q:/u/eve"}`)
		}), file: "announce_like"},
		{name: "an Announce of an Announce", given: both(moderates, shows(comment, "announce_create_comment")), file: "announce_create_comment",
			replace: []string{`"type": "Create"`, `"type": "Announce"`}, asked: comment},
		{name: "a Follow in another one's name", given: moderates, file: "announce_like", replace: []string{`"type": "Like"`, `"type": "Follow"`, post, "us:/alice"}},
		{name: "a lock, which is nothing here", given: hasPost, file: "announce_like", replace: []string{`"type": "Like"`, `"type": "Lock"`}, asked: "q:/activities/like/l1"},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			r.given(s)
			body := strings.NewReplacer(r.replace...).Replace(lemmy(t, r.file))
			before := 0
			if r.asked != "" {
				before = s.Asked(r.asked)
			}
			var err error
			made := s.Changes(func() { err = s.Send(community, "us:/inbox", body) })
			if err != nil || !slices.Equal(made, r.want) {
				t.Errorf("err = %v, changes:\n%s\nwant:\n%s", err, strings.Join(made, "\n"), strings.Join(r.want, "\n"))
			}
			if r.asked != "" && s.Asked(r.asked) != before {
				t.Errorf("%s was asked for", r.asked)
			}
			expect(t, s, "again", nil, accepted, func() error { return s.Send(community, "us:/inbox", body) })
		})
	}
	t.Run("a Like that its actor sends takes the place of the group's", func(t *testing.T) {
		t.Parallel()
		s := stage.Scene(t)
		both(hasPost, sent("announce_dislike"))(s)
		likedByEve(s)
		votes := s.Column(t, s.Alice, `SELECT type || ' ' || activity_uri FROM reactions WHERE kind = 'review'`)
		if want := "Like " + s.Long("q:/activities/like/l1"); !slices.Equal(votes, []string{want}) {
			t.Errorf("the votes are %q, want %q", votes, want)
		}
	})
}

// likedByEve makes eve's own server send eve's Like of the post.
func likedByEve(s *peertest.Scene) {
	s.Actor("q:/u/eve")
	s.Follows("q:/u/eve")
	s.MustSend("q:/u/eve", "us:/alice/inbox", ownLike)
}

const ownLike = `{"id":"q:/activities/like/l1","type":"Like","actor":"q:/u/eve","to":"as:Public","object":"p:/post/5"}`

// When a group announces a vote, the engine itself writes the activity of the vote. The activity
// names the voter, and contains none of the group's words.
func TestAVoteThatAGroupPassesOnHasNoWordsOfTheGroup(t *testing.T) {
	t.Parallel()
	stage := peertest.NewStage(t, peertest.NewInbound(t))
	const (
		words  = `,"content":"buy","summary":"buy","message":"buy","tag":[{"type":"Mention","name":"buy","href":"us:/alice"}]`
		custom = `,"content":":blob:","message":"buy","tag":[{"type":"Mention","name":"buy","href":"us:/alice"},
			{"type":"Emoji","id":"q:/emoji/blob","name":":blob:","summary":"buy","icon":{"type":"Image","name":"buy","url":"q:/blob.png"}}]`
	)
	for _, tt := range []struct{ name, kind, members, want string }{
		{"a Like", "Like", words, ""},
		{"a Dislike", "Dislike", words, ""},
		{"an emoji", "EmojiReact", strings.Replace(words, "buy", "🐝", 1), `,"content":"🐝"`},
		{"an emoji as Misskey sends it", "Like", `,"_misskey_reaction":"🐝","message":"buy"`, `,"content":"🐝"`},
		{"a custom emoji", "EmojiReact", custom, `,"content":":blob:","tag":[{"type":"Emoji","name":":blob:","icon":{"type":"Image","url":"q:/blob.png"}}]`},
		{"a custom emoji with words for a picture", "EmojiReact", strings.Replace(custom, "q:/blob.png", "buy this", 1), `,"content":":blob:","tag":[{"type":"Emoji","name":":blob:"}]`},
		{"a custom emoji without a picture", "EmojiReact", strings.Replace(custom, `"icon"`, `"attachment"`, 1), `,"content":":blob:","tag":[{"type":"Emoji","name":":blob:"}]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := stage.Scene(t)
			moderates(s)
			s.Act("", `{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public","cc":"`+community+`","object":{"id":"us:/alice/objects/1","type":"Note","attributedTo":"us:/alice","to":"as:Public","cc":"`+community+`","content":"mine"}}`)
			s.MustSend(community, "us:/inbox", `{"id":"p:/announces/1","type":"Announce","actor":"`+community+`","to":"as:Public","cc":"`+community+`/followers",
				"object":{"id":"q:/votes/1","type":"`+tt.kind+`","actor":"q:/u/eve","object":"us:/alice/objects/1"`+tt.members+`}}`)
			want, err := vocab.ParseDoc([]byte(s.Long(`{"id":"p:/announces/1","type":"` + tt.kind + `","actor":"q:/u/eve","object":"us:/alice/objects/1"` + tt.want + `}`)))
			if err != nil {
				t.Fatal(err)
			}
			raw := s.Column(t, s.Alice, `SELECT raw FROM activities WHERE type <> 'Accept' AND direction = 'inbound'`)
			if len(raw) != 1 {
				t.Fatalf("alice has %q, want one activity", raw)
			}
			got, err := vocab.ParseDoc([]byte(raw[0]))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("alice has %s, want %s", raw[0], want.JSON())
			}
		})
	}
}

// An announced activity that has its author's proof is accepted without a fetch.
func TestAGroupAnnouncesWhatItsAuthorHasProven(t *testing.T) {
	t.Parallel()
	s := peertest.NewStage(t, peertest.NewInbound(t)).Scene(t)
	moderates(s)
	announce := func(n, by, inner string) []byte {
		short := `{"@context":"https://www.w3.org/ns/activitystreams","id":"p:/announces/` + n + `","type":"Announce","actor":"` + community + `","to":"as:Public","cc":"` + community + `/followers","object":%}`
		return []byte(strings.Replace(s.Long(short), "%", string(s.Proven(by, inner)), 1))
	}
	note := func(kind, n, members string) string {
		return `{"@context":["https://www.w3.org/ns/activitystreams","https://w3id.org/security/data-integrity/v1"],"id":"q:/acts/` + n + `","type":"` + kind + `","actor":"q:/u/eve","to":"as:Public",
			"object":{"id":"q:/notes/1","type":"Note","attributedTo":"q:/u/eve","to":"as:Public","cc":"` + community + `","published":"2024-01-01T00:00:00Z",` + members + `}}`
	}
	s.Actor("q:/u/eve")
	s.Actor("q:/u/mallory")
	for n, step := range []struct {
		by, inner string
		want      string
	}{
		{"q:/u/mallory", note("Create", "0", `"content":"forged"`), ""},
		{"q:/u/eve", note("Create", "1", `"content":"one"`), "one"},
		{"q:/u/eve", note("Update", "2", `"content":"two","updated":"2025-01-01T00:00:00Z"`), "two"},
		{"q:/u/eve", note("Update", "3", `"content":"older","updated":"2024-12-31T00:00:00Z"`), "two"},
		{"q:/u/eve", note("Update", "4", `"content":"undated"`), "two"},
	} {
		if err := s.Pass(community, "us:/inbox", announce(string(rune('a'+n)), step.by, step.inner)); err != nil {
			t.Fatal(err)
		}
		got := s.Column(t, s.Alice, `SELECT raw ->> 'content' FROM objects`)
		if strings.Join(got, " ") != step.want {
			t.Errorf("after %s alice holds %q, want %q", step.inner, got, step.want)
		}
	}
}
