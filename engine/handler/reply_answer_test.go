package handler_test

import (
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest/peertest"
)

// GoToSocial tells by an Accept or Reject of the answer itself whether an author wants an answer.
func TestAnswersToAnAnswerAreShown(t *testing.T) {
	const result = `,"result":"p:/authorizations/1"`
	replied := func(s *peertest.Scene) {
		s.Act("", `{"id":"us:/alice/objects/1/create","type":"Create","actor":"us:/alice","to":"as:Public","cc":"p:/carol","object":{"id":"us:/alice/objects/1","type":"Note",
			"attributedTo":"us:/alice","to":"as:Public","cc":"p:/carol","inReplyTo":"p:/notes/1","content":"mine"}}`)
		s.Serve("p:/authorizations/1", `{"id":"p:/authorizations/1","type":"ReplyAuthorization","attributedTo":"p:/carol","interactingObject":"us:/alice/objects/1","interactionTarget":"p:/notes/1"}`)
	}
	answer := func(by, kind, n, more string) string {
		return `{"id":"p:/answers/` + n + `","type":"` + kind + `","actor":"` + by + `","to":"us:/alice","object":"us:/alice/objects/1","target":"p:/notes/1"` + more + `}`
	}
	told := func(kind, event string) []string {
		return []string{"+ activity inbound " + kind + " p:/answers/1 us:/alice/objects/1", "+ event " + event + " p:/answers/1 us:/alice/objects/1 by stranger p:/carol"}
	}
	ofDan := func(s *peertest.Scene) {
		s.MustSend("p:/dan", "us:/inbox", `{"id":"p:/notes/1/create","type":"Create","actor":"p:/dan","to":["as:Public","us:/alice"],"object":{"id":"p:/notes/1","type":"Note",
			"attributedTo":"p:/dan","to":["as:Public","us:/alice"],"content":"theirs"}}`)
		replied(s)
	}
	accepted := func(s *peertest.Scene) {
		replied(s)
		s.MustSend("p:/carol", "us:/inbox", answer("p:/carol", "Accept", "0", result))
	}
	play(t, []row{
		{name: "an Accept by another one than the author", given: ofDan, body: answer("p:/carol", "Accept", "1", result)},
		{name: "an Accept that comes again under another id", given: accepted, body: answer("p:/carol", "Accept", "1", result)},
		{name: "an Accept", given: replied, body: answer("p:/carol", "Accept", "1", result), forged: answer("p:/dave", "Accept", "2", result), want: told("Accept", "accept.received")},
		{name: "a Reject", given: replied, body: answer("p:/carol", "Reject", "1", ""), forged: answer("p:/dave", "Reject", "2", ""), want: told("Reject", "reject.received")},
		{name: "a Reject of what answers nobody", given: func(s *peertest.Scene) { s.Posts("us:/alice/objects/1", "as:Public") }, body: answer("p:/carol", "Reject", "1", "")},
		{name: "a Reject of what is not there", body: answer("p:/carol", "Reject", "1", "")},
	})
}
