package engine_test

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnNames(t *testing.T) {
	t.Parallel()
	newSiege(t).play(nameAttacks)
}

var nameAttacks = []attack{
	{id: "NAM-01", sends: "WebFinger for `acct:../../etc`, names with NUL, two hosts, none, or 64 kB", happens: "400 or 404; no file and no database is named by it", play: func(s *siege) {
		host := strings.TrimPrefix(s.home.URL, "http://")
		for _, resource := range []string{"acct:../../etc@" + host, "acct:alice\x00@" + host, "acct:alice@" + host + "@127.0.0.2", "acct:@" + host, "acct:" + strings.Repeat("a", 20_000) + "@" + host,
			"acct:alice@127.0.0.2", "acct:alice", "acct:", "", "alice/../bob@" + host, "acct:alice%2f..@" + host} {
			a := enginetest.Fetch(s, s.home.URL+"/.well-known/webfinger?resource="+url.QueryEscape(resource))
			s.answered(a, 400, 404)
		}
	}},
	{id: "NAM-02", sends: "paths that climb: `..%2f..%2fkeys`, %2e%2e, backslashes, NUL, semicolons", happens: "404 or 400: no path of a file is made of a request", play: func(s *siege) {
		for _, path := range []string{"/users/..%2f..%2fkeys", "/users/%2e%2e/keys", "/users/alice/../bob", "/users/alice%2f..%2fbob", "/users/alice;a=b", `/users/alice\..\bob`, "/users/alice%00",
			"/users//alice", "/users/alice/keys", "/users/alice/keys/rsa.pem", "/users/.", "/users/..", "/users/%252e%252e"} {
			got := s.raw("GET " + path + " HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.home.URL, "http://") + "\r\nAccept: application/activity+json\r\nConnection: close\r\n\r\n")
			if got.Status != 404 && got.Status != 400 || bytes.Contains(got.Body, []byte("KEY")) {
				s.Errorf("%s was answered %d %s", path, got.Status, got.Body)
			}
		}
	}},
	{id: "NAM-03", sends: "user names that are patterns, paths, look like others, are reserved, or too long for a database", happens: "`user create` refuses them (exit code 64 or 65), addresses are 404: a name is `[a-z0-9_]{1,30}`", play: func(s *siege) {
		for _, name := range []string{"al:ice", "*", "a?b", "[a]", "alice\n", "ALICE\u0301", "аlice", "ali\u200bce", "admin", "inbox", "api", "well_known", ".well-known", strings.Repeat("a", 31), strings.Repeat("a", 64), "-rf", "a-b", "", "..", "a/b"} {
			if got := s.home.Run(s, "user", "create", "--", name); got.Code != 64 && got.Code != 65 {
				s.Errorf("user create %q ended with %d %s", name, got.Code, got.Stderr)
			}
			if name == "" || name == ".." || name == "a/b" {
				continue // an address cannot contain such a name
			}
			s.answered(enginetest.Fetch(s, s.home.URL+"/users/"+url.PathEscape(name)), 404, 400)
		}
	}},
	{id: "NAM-04", sends: "actors whose preferredUsername is HTML, turns the writing round, has line breaks, is a megabyte, empty, or a list", happens: "401 for what is no name, else it is cleaned; handles are believed after WebFinger only", asks: 20, play: func(s *siege) {
		for n, name := range []any{"<script>x</script>", "\u202eecila", "a\nb", strings.Repeat("a", 500_000), "a@b", "", []any{"a", "b"}, vocab.Doc{"a": "b"}, 5} {
			a := s.p.Actor("/users/nam-04-" + string(rune('a'+n)))
			a.Doc["preferredUsername"] = name
			a.Show()
			like := vocab.Doc{"id": string(a.ID) + "/1", "type": "Like", "actor": string(a.ID), "object": s.q.Origin + "/notes/1"} // the liked object is on another server
			s.answered(s.forge(peertest.Forgery{URL: s.home.URL + "/inbox", Key: a.Keys.RSA, Body: string(like.JSON())}), 202, 401)
		}
	}},
	{id: "NAM-05", sends: "hosts that look like others: Cyrillic letters, A-labels beside letters, underscores, upper case, a dot at the end", happens: "hosts are compared as A-labels in lower case; what differs is another host", play: func(s *siege) {
		for _, id := range []string{"http://xn--e1afmkfd.example/users/x", "http://EVIL_.example./users/x", "http://127.0.0.3.:1/users/carol", "http://①②⑦.0.0.3/users/carol"} {
			s.answered(s.forge(peertest.Forgery{Body: `{"id":"` + id + `/1","type":"Like","actor":"` + id + `","object":"` + s.note + `"}`}), 400, 401, 403, 503) // 503: no server answers at that address
		}
	}},
	{id: "NAM-06", sends: "an actor of mallory's server that claims carol's handle, by WebFinger, by its `webfinger` and by a redirect", happens: "the handle is not believed: WebFinger of its host must name this very actor", asks: 8, play: func(s *siege) {
		host := strings.TrimPrefix(s.q.Origin, "http://")
		a := s.p.Actor("/users/nam-06")
		a.Doc["preferredUsername"], a.Doc["webfinger"] = "carol", "carol@"+host
		a.Show()
		jrd := vocab.Doc{"subject": "acct:carol@" + host, "links": []any{vocab.Doc{"rel": "self", "type": "application/activity+json", "href": string(a.ID)}}}
		s.p.Serve("/.well-known/webfinger", jrd.JSON())
		s.q.Serve("/.well-known/webfinger", vocab.Doc{"subject": "acct:carol@" + host, "links": []any{vocab.Doc{"rel": "self", "type": "application/activity+json", "href": string(s.carol.ID)}}}.JSON())
		got := s.home.Run(s, "actor", "fetch", string(a.ID), "--json")
		if got.Code == 0 && strings.Contains(got.Stdout, `"handle":"@carol@`+host) || strings.Contains(got.Stdout, `"handle":"carol@`+host) {
			s.Errorf("the handle was believed: %s", got.Stdout)
		}
	}},
	{id: "NAM-07", sends: "a server that comes back under the same name with new keys for old actors", happens: "the new key counts, as the name's owner says; the follow stands, and nothing private is sent again", asks: 4, changes: true, play: func(s *siege) {
		dave := s.q.Actor("/users/nam-07")
		s.accepted(s.post(dave, s.alice.ID+"/inbox", s.like(dave, "before")))
		s.forget(dave)
		taken := s.q.Actor("/users/nam-07")
		before := len(s.q.Posted())
		s.accepted(s.post(taken, s.alice.ID+"/inbox", s.like(taken, "after")))
		s.settle()
		if n := len(s.q.Posted()) - before; n != 0 {
			s.Errorf("%d posts were sent because of a new key", n)
		}
	}},
}
