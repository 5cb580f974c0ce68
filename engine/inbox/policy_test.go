package inbox_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
)

const (
	toEverybody = `"to":"as:Public"`
	boost       = `{"id":"p:/boosts/1","type":"Announce","actor":"p:/carol",` + toEverybody + `,"object":"OBJECT"}`
)

// mallorys is a Follow by q:/mallory, an actor of the second peer.
var mallorys = strings.NewReplacer("p:/carol", "q:/mallory", "p:/", "q:/").Replace(follow)

// The engine never contacts a blocked host and stores nothing of it. The cases name the host in
// each part of an activity.
func TestABlockedHostIsTouchedNowhere(t *testing.T) {
	t.Parallel()
	refused := fault.Forbidden
	for _, c := range []struct {
		name, from, body string
		kind             fault.Kind
		want             []string // the changes in alice's database; alice follows carol
	}{
		{"MOD-02 the key and the actor", "q:/mallory", mallorys, refused, nil},
		{"MOD-02 the key alone", "q:/mallory", follow, refused, nil},
		{"MOD-02 the actor alone", "p:/carol", strings.Replace(follow, `"actor":"p:/carol"`, `"actor":"q:/mallory"`, 1), refused, nil},
		{"MOD-02 the id", "p:/carol", strings.Replace(follow, "p:/follows", "q:/follows", 1), fault.Invalid, nil},
		{"MOD-02 what is announced", "p:/carol", strings.Replace(boost, "OBJECT", "q:/notes/1", 1), accepted, nil},
		{"MOD-02 who wrote what is announced", "p:/carol", strings.Replace(boost, "OBJECT", "p:/notes/mallorys", 1), accepted, nil},
		{"MOD-02 where a redirect leads", "p:/carol", strings.Replace(boost, "OBJECT", "p:/elsewhere", 1), accepted, nil},
		{"MOD-02 who wrote what is embedded", "p:/carol", `{"id":"p:/creates/1","type":"Create","actor":"p:/carol",` + toEverybody + `,"object":{"id":"p:/notes/1","type":"Note","attributedTo":"q:/mallory"}}`, fault.Invalid, nil},
		{"MOD-02 the target of a Move", "p:/carol", `{"id":"p:/moves/1","type":"Move","actor":"p:/carol","object":"p:/carol","target":"q:/mallory"}`, accepted, nil},
		{"MOD-02 what is answered, which is not fetched", "p:/carol", `{"id":"p:/creates/1","type":"Create","actor":"p:/carol",` + toEverybody + `,"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/carol","inReplyTo":"q:/notes/1","content":"no"}}`, accepted, []string{
			"+ object p:/notes/1 Note no", "+ activity inbound Create p:/creates/1 p:/notes/1", "+ feed p:/creates/1 by p:/carol",
			"+ event create.received p:/creates/1 p:/notes/1 by contact p:/carol"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.Follows("p:/carol")
			mallory := s.Actor("q:/mallory")
			s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/mallory",`+toEverybody+`}`)
			s.Serve("p:/notes/mallorys", `{"id":"p:/notes/mallorys","type":"Note","attributedTo":"q:/mallory",`+toEverybody+`}`)
			s.Redirect("p:/elsewhere", "q:/notes/1")
			carol := s.Actor("p:/carol")
			carol.Doc["movedTo"], mallory.Doc["alsoKnownAs"] = string(mallory.ID), []any{string(carol.ID)}
			carol.Show()
			mallory.Show()
			s.Block("127.0.0.3")
			for _, inbox := range []string{mine, shared} {
				expect(t, s, c.want, c.kind, func() error { return s.Send(c.from, inbox, c.body) })
				c.want = nil // the second arrival changes nothing
			}
			if asked := s.Reached("q:"); asked != 0 {
				t.Errorf("the blocked host was asked %d times", asked)
			}
		})
	}
}

// MOD-02b: every refusal has the same answer, so that a blocked host cannot learn what is blocked.
func TestWhoIsRefusedIsRefusedInOneVoice(t *testing.T) {
	s := newScene(t)
	s.Block("127.0.0.3")
	s.Suspend(s.Actor("p:/carol").ID)
	for name, err := range map[string]error{
		"the key":              s.Send("q:/mallory", mine, follow),
		"the actor":            s.Send("p:/dave", mine, strings.Replace(follow, "p:/carol", "q:/mallory", 1)),
		"nobody's inbox":       s.Receive(s.Request("q:/mallory", "us:/users/nobody/inbox", follow), "us:/users/nobody/inbox", follow),
		"a suspended actor":    s.Send("p:/carol", mine, follow),
		"a suspended actor's":  s.Send("p:/dave", mine, follow),
		"not even an activity": s.Receive(s.Request("q:/mallory", mine, `{}`), mine, `{}`),
	} {
		if e := fault.Of(err); e == nil || e.Kind != fault.Forbidden || e.Public != "this server does not federate with that domain or actor" || e.Code != "" {
			t.Errorf("%s: %v, want the one answer", name, err)
		}
	}
}

// The engine treats a suspended actor like an actor of a blocked host. It does not treat other
// actors of the same server so.
func TestASuspendedActorIsNotHeard(t *testing.T) {
	t.Parallel()
	const channels = `{"id":"p:/creates/2","type":"Create","actor":"p:/carol",` + toEverybody + `,"object":{"id":"p:/notes/2","type":"Note","attributedTo":["p:/carol","p:/channel"]}}`
	for _, c := range []struct {
		name, from, body string
		kind             fault.Kind
	}{
		{"its Follow", "p:/troll", strings.ReplaceAll(follow, "p:/carol", "p:/troll"), fault.Forbidden},
		{"its Delete of itself", "p:/troll", `{"id":"p:/deletes/1","type":"Delete","actor":"p:/troll","object":"p:/troll"}`, fault.Forbidden},
		{"its report", "p:/troll", strings.ReplaceAll(flag, "p:/carol", "p:/troll"), fault.Forbidden},
		{"ORG-29 its post, boosted by another", "p:/carol", strings.Replace(boost, "OBJECT", "p:/notes/trolls", 1), accepted},
		{"a post that it wrote together with another", "p:/carol", channels, accepted},
		{"a Move to it", "p:/carol", `{"id":"p:/moves/1","type":"Move","actor":"p:/carol","object":"p:/carol","target":"p:/troll"}`, accepted},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.Follows("p:/carol")
			carol, troll := s.Actor("p:/carol"), s.Actor("p:/troll")
			s.Serve("p:/notes/trolls", `{"id":"p:/notes/trolls","type":"Note","attributedTo":"p:/troll",`+toEverybody+`}`)
			carol.Doc["movedTo"], troll.Doc["alsoKnownAs"] = string(troll.ID), []any{string(carol.ID)}
			carol.Show()
			troll.Show()
			s.Suspend(troll.ID, s.ID("p:/channel"))
			for _, inbox := range []string{mine, shared} {
				expect(t, s, nil, c.kind, func() error { return s.Send(c.from, inbox, c.body) })
			}
			if n := s.Asked("p:/troll"); n != 0 {
				t.Errorf("its document was asked for %d times", n)
			}
		})
	}
}

// The engine checks an activity that waits in the journal against the policy again when it applies
// the activity.
func TestThePolicyHoldsForWhatWaited(t *testing.T) {
	s := newScene(t)
	s.Follows("p:/carol")
	s.MustSend("q:/mallory", mine, mallorys)
	s.Serve("q:/notes/1", `{"id":"q:/notes/1","type":"Note","attributedTo":"q:/mallory",`+toEverybody+`}`)
	before := s.Rows()
	s.Down(t, s.Alice)
	s.MustSend("p:/carol", mine, strings.Replace(boost, "OBJECT", "q:/notes/1", 1))
	s.MustSend("q:/mallory", mine, `{"id":"q:/likes/1","type":"Like","actor":"q:/mallory","object":"us:/alice/objects/1","to":"us:/alice"}`)
	s.MustSend("q:/mallory", mine, `{"id":"q:/undos/1","type":"Undo","actor":"q:/mallory","object":"q:/follows/1"}`)
	s.Block("127.0.0.3")
	s.Up(t, s.Alice)
	settled(t, s)
	var gone []string
	after := s.Rows()
	for _, line := range before {
		if !slices.Contains(after, line) {
			gone = append(gone, line)
		}
	}
	if len(gone) != 2 || len(after) != len(before)-2 { // a blocked actor's Undo still removes the follow
		t.Errorf("gone is %q, and there are %d rows where there were %d; want the follow and its activity gone and nothing else", gone, len(after), len(before))
	}
}

// SIG-13: the engine refuses a request with two signatures if one of them is by a blocked host.
func TestEverySignatureMustBeWelcome(t *testing.T) {
	s := newScene(t)
	s.Block("127.0.0.3")
	r := s.Request("p:/carol", mine, follow)
	other := s.Actor("q:/mallory").Post(t, s.Long(mine), s.MediaType, []byte(s.Long(follow)), signature.RFC9421, s.Now())
	for _, name := range []string{"Signature", "Signature-Input"} {
		r.Header.Set(name, r.Header.Get(name)+", "+strings.Replace(other.Header.Get(name), "sig1", "sig2", 1))
	}
	expect(t, s, nil, fault.Forbidden, func() error { return s.Receive(r, mine, follow) })
}
