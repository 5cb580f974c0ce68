package engine_test

import (
	"fmt"
	"net/http"
	"net/url"
)

var see07 = attack{id: "SEE-07", sends: "200 activities of an LLM engine, and look-ups of actors, objects and threads, whose addresses hold the words of a letter",
	happens: "403, and 429 after 60: nobody is asked for what the user has not here; the user itself may name it as ever", changes: true, asks: 5, play: func(s *siege) {
		engine := s.holder(s.alice, "llm")
		asked := s.asked()
		for n := range 200 {
			evil := fmt.Sprintf("%s/x?d=the-words-of-a-letter-%d", s.p.Origin, n)
			try := []struct {
				action string
				params map[string]any
			}{
				{"Like", map[string]any{"objectId": evil}}, {"Boost", map[string]any{"objectId": evil}}, {"Reply", map[string]any{"objectId": evil, "content": "x"}},
				{"CreateNote", map[string]any{"content": "x", "inReplyTo": evil}}, {"CreateNote", map[string]any{"content": "x", "to": []any{evil}}},
				{"SendMessage", map[string]any{"content": "x", "recipientUri": evil}}, {"CreateNote", map[string]any{"content": "x", "cc": []any{fmt.Sprintf("@words-%d@%s", n, host(s.p.Origin))}}},
				{"Follow", map[string]any{"actorUri": evil}},
			}[n%8]
			want := http.StatusForbidden
			if n >= 60 {
				want = http.StatusTooManyRequests
			}
			s.answered(engine.Try(s, try.action, try.params), want)
			if n == 100 { // the limit of the assistant's token does not apply to alice's own token
				s.alice.Do(s, "CreateNote", map[string]any{"content": "as ever", "visibility": "direct", "to": []any{string(s.carol.ID)}})
			}
		}
		evil := url.QueryEscape(s.p.Origin + "/x?d=the-words-of-a-letter")
		for path, want := range map[string]int{"/api/actors?uri=" + evil: http.StatusForbidden, "/api/actors?handle=" + url.QueryEscape("@words@"+host(s.p.Origin)): http.StatusForbidden,
			"/api/objects?uri=" + evil: http.StatusNotFound, "/api/objects/thread?backfill=true&uri=" + evil: http.StatusForbidden} {
			s.answered(engine.Ask(s, http.MethodGet, path, nil), want)
		}
		s.settle()
		if n := s.asked() - asked; n != 1 {
			s.Errorf("%d requests left, want the one letter to carol", n)
		}
		if rows := s.count("lightweb_alice", `SELECT count(*) FROM audit WHERE outcome IN ('not_known_here', 'insufficient_scope', 'assistant_limit')`); rows > 6+6 {
			s.Errorf("%d records of refusals, want one for each action and outcome", rows)
		}
		other := s.p.Actor("/users/see-07")
		s.alice.Do(s, "CreateNote", map[string]any{"content": "as ever", "visibility": "direct", "to": []any{string(other.ID)}})
	}}
