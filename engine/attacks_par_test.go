package engine_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/lightweb/lightweb/engine/enginetest"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

func TestAttacksOnTheParser(t *testing.T) {
	t.Parallel()
	newSiege(t).play(parserAttacks)
}

// text sends a request signed by mallory. Its body is the given text.
func (s *siege) text(body string) enginetest.Answer {
	s.Helper()
	return s.forge(peertest.Forgery{Body: body, Dialect: signature.RFC9421})
}

// with returns a Like of mallory's as text, with the given additional members.
func (s *siege) with(name, members string) string {
	return fmt.Sprintf(`{"id":%q,"type":"Like","actor":%q,"object":%q,%s}`, s.id(s.mallory, name), s.mallory.ID, s.note, members)
}

// spurned checks that the engine refuses each text with 400.
func (s *siege) spurned(texts ...string) {
	s.Helper()
	for _, text := range texts {
		if a := s.text(text); a.Status != http.StatusBadRequest {
			s.Errorf("answered %d %s, want 400: %.200q", a.Status, a.Body, text)
		}
	}
}

// ignored lets mallory's server serve each text first as a note and then as an actor. It checks
// that the engine uses neither.
func (s *siege) ignored(texts ...string) {
	s.Helper()
	for n, text := range texts {
		at := s.show(fmt.Sprintf("/%s-%d", strings.ToLower(s.row.id), n), func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, text) // the engine may have hung up
		})
		s.accepted(s.boost(at))
		s.unauthorized(s.claim("", at+"?actor", signature.RFC9421))
	}
}

// write calls change() with a note of mallory's, sends the note to alice and checks that the
// answer is 202. It returns the note's id.
func (s *siege) write(name string, change func(note vocab.Doc)) (note string) {
	s.Helper()
	create := s.create(s.mallory, name)
	o := create["object"].(vocab.Doc)
	change(o)
	s.accepted(s.post(s.mallory, s.alice.ID+"/inbox", create))
	return o.Text("id")
}

// feed returns the plain text of each note in alice's feed, by the note's id. It checks that every
// page is valid and at most 8 MiB.
func (s *siege) feed() map[string]string {
	s.Helper()
	words := map[string]string{}
	for next := "/api/feed?limit=100"; next != ""; {
		a := s.alice.Ask(s, http.MethodGet, next, nil)
		if a.Status != http.StatusOK || len(a.Body) > 8<<20 {
			s.Fatalf("%s was answered %d with %d bytes", next, a.Status, len(a.Body))
		}
		var page struct {
			Items []struct {
				Object struct {
					ID     string
					Source struct{ Content string }
				}
			}
			Next string
		}
		a.Decode(s, &page)
		for _, item := range page.Items {
			words[item.Object.ID] = item.Object.Source.Content
		}
		if next = ""; page.Next != "" {
			next = "/api/feed?limit=100&cursor=" + url.QueryEscape(page.Next)
		}
	}
	return words
}

// wholesome checks that no activity was set aside for alice.
func (s *siege) wholesome() {
	s.Helper()
	s.settle()
	if n := s.count("lightweb_alice", `SELECT count(*) FROM poison`); n > 0 {
		s.Errorf("%d activities were set aside: %q", n, s.alice.Column(s, `SELECT reason FROM poison`))
	}
}

// pour writes the head and then parts without end until the engine answers. It returns the answer
// and how many bytes it wrote.
func (s *siege) pour(head string, part []byte) (a enginetest.Answer, taken int64) {
	s.Helper()
	conn := s.dial()
	done := make(chan struct{})
	go func() {
		defer close(done)
		n, err := io.WriteString(conn, head)
		for err == nil {
			taken += int64(n)
			n, err = conn.Write(part)
		}
	}()
	a = s.answer(conn)
	_ = conn.Close() // ends the goroutine that writes
	<-done
	return a, taken
}

// answers sends raw bytes and closes its side of the connection. It returns the statuses of all
// answers.
func (s *siege) answers(request string) (statuses []int) {
	s.Helper()
	conn := s.dial()
	defer conn.Close()
	_, err := io.WriteString(conn, request)
	if err == nil {
		err = conn.(*net.TCPConn).CloseWrite()
	}
	if err != nil {
		s.Logf("the engine hung up: %v", err)
	}
	for r := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses
		}
		statuses = append(statuses, resp.StatusCode)
		if err := resp.Body.Close(); err != nil { // Close reads the rest of the body
			return statuses
		}
	}
}

// answeredRaw sends raw bytes and checks that the status of the first answer is one of statuses.
// The status 0 means no answer.
func (s *siege) answeredRaw(request string, statuses ...int) {
	s.Helper()
	got := append(s.answers(request), 0)[0]
	if !slices.Contains(statuses, got) {
		s.Errorf("answered %d, want %v: %.200q", got, statuses, request)
	}
}

// random returns n bytes of text that cannot be compressed.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // Read never fails
	return base64.RawURLEncoding.EncodeToString(b)[:n]
}

// repeated returns a JSON list of n values. In each value, %d is replaced by the value's number.
func repeated(n int, value string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(value, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// slowly opens connections. Over each it sends the head and then a byte at a time. It returns when
// the engine has closed all connections.
func (s *siege) slowly(connections int, head string) {
	var all sync.WaitGroup
	for range connections {
		all.Go(func() {
			conn, err := net.Dial("tcp", host(s.home.URL))
			if err != nil {
				s.Errorf("the engine takes no more connections: %v", err)
				return
			}
			defer conn.Close()
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				_, _ = io.Copy(io.Discard, conn) // until the engine closes or resets the connection
			}()
			if _, err = io.WriteString(conn, head); err != nil {
				return
			}
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-closed:
					return
				case <-tick.C:
					if _, err := io.WriteString(conn, "x"); err != nil {
						return
					}
				}
			}
		})
	}
	all.Wait()
}

var parserAttacks = []attack{
	{id: "PAR-01", sends: "bodies of a gigabyte, with and without their length, in chunks without end, shorter and longer than they say; and the same in answers to the engine", happens: "413 or 400; 1 MiB is read and no more, of actors and WebFinger 256 KiB", asks: 4, play: func(s *siege) {
		post := "POST /inbox HTTP/1.1\r\nHost: " + host(s.home.URL) + "\r\nContent-Type: " + vocab.ActivityJSON + "\r\n"
		part := bytes.Repeat([]byte(" "), 64<<10)
		chunk := fmt.Appendf(nil, "%x\r\n%s\r\n", len(part), part)
		for _, p := range []struct {
			head string
			part []byte
		}{{fmt.Sprintf("Content-Length: %d\r\n\r\n", 1<<30), part}, {"Transfer-Encoding: chunked\r\n\r\n", chunk}} {
			a, taken := s.pour(post+p.head, p.part)
			s.answered(a, 413)
			if taken > 16<<20 {
				s.Errorf("%d bytes were taken, want little more than 1 MiB", taken)
			}
		}
		for _, length := range []string{"-1", "9223372036854775808", "1e3", "0x10", "", "1, 2", "+5"} {
			s.answeredRaw(post+"Content-Length: "+length+"\r\n\r\n{}", 400)
		}
		s.answeredRaw(post+"Content-Length: 100\r\n\r\n{}", 400)
		large := []byte(`{"action":"CreateNote","params":{"content":"` + strings.Repeat("x", 1<<20) + `"}}`)
		s.answered(s.alice.Ask(s, http.MethodPost, "/api/activity", json.RawMessage(large)), 413)

		var taken atomic.Int64
		endless := stream(&taken, part)
		for n, lead := range []func(at string) enginetest.Answer{
			func(at string) enginetest.Answer { return s.claim("", at, signature.RFC9421) },
			s.boost,
			func(at string) enginetest.Answer { return s.alice.Try(s, "Like", map[string]any{"objectId": at}) },
		} {
			s.answered(lead(s.show(fmt.Sprint("/par-01-", n), endless)), 202, 401, 404)
		}
		s.show("/.well-known/webfinger", endless)
		s.answered(s.alice.Try(s, "Follow", map[string]any{"actorUri": "@par-01@" + host(s.p.Origin)}), 422)
		if n := taken.Load(); n > 32<<20 {
			s.Errorf("%d bytes were taken of four endless answers", n)
		}
	}},
	{id: "PAR-02", sends: "100,000 nested objects and lists, closed and not, and 65 levels", happens: "400 beyond 64 levels, also in what is fetched: dropped or 401", asks: 6, play: func(s *siege) {
		deep := []string{strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000), s.with("lists", `"a":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)),
			s.with("objects", `"a":`+strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_000)), s.with("just", `"a":`+strings.Repeat("[", 64)+strings.Repeat("]", 64))}
		s.spurned(deep...)
		s.ignored(deep[0], deep[2])
		for _, text := range deep {
			if json.Valid([]byte(text)) {
				s.answered(s.alice.Ask(s, http.MethodPost, "/api/activity", json.RawMessage(text)), 400)
			}
		}
	}},
	{id: "PAR-03", sends: "60,000 names; 60,000 tags and attachments; 1,001 and a million recipients", happens: "400; 413 for what is larger than 1 MiB", play: func(s *siege) {
		s.spurned(s.with("names", repeated(60_000, `"a%d":1`)), s.with("to", `"to":[`+repeated(1001, `"https://peer.example/%d"`)+`]`), s.with("both", `"to":[`+repeated(501, `"https://peer.example/%d"`)+`],"cc":[`+repeated(500, `"https://peer.example/%d"`)+`]`),
			s.with("same", `"to":[`+repeated(1001, `"https://peer.example/1"`)+`]`))
		for _, name := range []string{"tag", "attachment"} {
			s.spurned(s.with(name, `"`+name+`":[`+repeated(60_000, `{}`)+`]`), fmt.Sprintf(`{"id":%q,"type":"Create","actor":%q,"object":{"id":%q,"type":"Note","%s":[%s]}}`,
				s.id(s.mallory, "create"), s.mallory.ID, s.id(s.mallory, "note"), name, repeated(60_000, `{}`)))
		}
		s.answered(s.text(s.with("million", `"to":[`+repeated(1_000_000, `""`)+`]`)), 413)
	}},
	{id: "PAR-04", sends: "polls of 51 and of 20,000 options", happens: "400: 50 are taken", play: func(s *siege) {
		for _, kind := range []string{"oneOf", "anyOf"} {
			for _, n := range []int{51, 20_000} {
				s.spurned(fmt.Sprintf(`{"id":%q,"type":"Create","actor":%q,"to":%q,"object":{"id":%q,"type":"Question","attributedTo":%q,"to":%q,"%s":[%s]}}`, s.id(s.mallory, "create"), s.mallory.ID,
					s.alice.ID, s.id(s.mallory, "poll"), s.mallory.ID, s.alice.ID, kind, repeated(n, `{"type":"Note","name":"%d"}`)))
			}
		}
	}},
	{id: "PAR-05", sends: "names twice, plain and escaped, and names in other capitals", happens: "400 for the same name twice; only exact names count", changes: true, play: func(s *siege) {
		carol := `"` + string(s.carol.ID) + `"`
		s.unchanged(func() {
			s.spurned(s.with("twice", `"actor":`+carol), s.with("escaped", `"act\u006fr":`+carol), s.with("id", `"id":`+carol), s.with("deep", `"x":[{"a":1,"b":{"c":1,"c":2}}]`))
			for _, name := range []string{"id", "type", "actor", "object"} {
				for _, other := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], name + " ", "as:" + name} {
					s.spurned(strings.Replace(s.with(name, `"x":1`), `"`+name+`"`, `"`+other+`"`, 1))
				}
			}
			s.ignored(strings.Replace(string(s.served("/par-05-0").JSON()), "{", `{"id":"`+s.p.Origin+`/par-05-0",`, 1))
		})
		s.accepted(s.text(s.with("capitals", `"Actor":`+carol+`,"ACTOR":`+carol+`,"Id":`+carol+`,"Object":"`+s.secret+`"`)))
		s.settle()
		if n := s.count("lightweb_alice", `SELECT count(*) FROM reactions WHERE activity_uri = $1 AND actor_uri = $2 AND object_uri = $3`, s.id(s.mallory, "capitals"), s.mallory.ID, s.note); n != 1 {
			s.Errorf("a Like with names in other capitals was kept %d times as mallory's of the note, want once", n)
		}
	}, asks: 3},
	{id: "PAR-06", sends: "invalid and overlong UTF-8, a byte order mark, UTF-16, lone surrogates, NUL, characters that turn the direction of writing, and types that end a line of the stream of events and begin events of their own", happens: "400; names, summaries, tags and descriptions are shown without such characters", asks: 13, changes: true, play: func(s *siege) {
		like := s.with("like", `"x":1`)
		wide := new(strings.Builder)
		for _, unit := range utf16.Encode([]rune(like)) {
			wide.Write([]byte{byte(unit), byte(unit >> 8)})
		}
		bad := []string{s.with("bytes", "\"x\":\"\xff\xfe\""), s.with("overlong", "\"x\":\"\xc0\xaf\""), s.with("cut", "\"x\":\"\xe2\x82\""), s.with("surrogate", "\"x\":\"\xed\xa0\x80\""),
			"\xef\xbb\xbf" + like, wide.String(), "\xff\xfe" + wide.String(), s.with("lone", `"x":"\ud800"`), s.with("pair", `"x":"\udc00\ud800"`), s.with("nul", `"x":"\u0000"`), s.with("name", `"a\u0000b":1`),
			s.with("raw", "\"x\":\"\x00\""), s.with("line", "\"x\":\"\n\"")}
		before := s.state()
		s.spurned(bad...)
		s.ignored(bad[0], bad[4], bad[7], bad[9])
		for _, c := range []string{"\u202e", "\u2066", "\u200f", " ", "\u00a0", "\u2028"} {
			s.spurned(strings.Replace(like, s.id(s.mallory, "like"), s.id(s.mallory, "li"+c+"ke"), 1))
		}
		for _, kind := range []string{`x\n\nid: 0\nevent: dm.received\ndata: {\"trust\":\"self\"}`, `Like\r`, `Li\u2028ke`, `\u001b[2JLike`, `Li ke`, `Like\u202e`} {
			s.spurned(strings.Replace(like, `"Like"`, `"`+kind+`"`, 1), strings.Replace(like, `"Like"`, `["Like","`+kind+`"]`, 1))
		}
		s.settle()
		if after := s.state(); after != before {
			s.Errorf("it left traces:\n%s", difference(before, after))
		}
		a := s.p.Actor("/users/turned")
		a.Doc["name"], a.Doc["preferredUsername"] = "\u202eevil\u0007\u2066\n name\u0085", "tur\u202ened"
		a.Show()
		var shown struct{ Name, Handle string }
		s.home.Run(s, "actor", "fetch", string(a.ID), "--json").Decode(s, &shown)
		if shown.Name != "evil name" || shown.Handle != "" {
			s.Errorf("the actor is shown as %q, %q", shown.Name, shown.Handle)
		}
		const turning = "tur\u202e\u2067\u200f\u001b\u0085ned"
		note := s.write("turned", func(note vocab.Doc) {
			note["name"], note["summary"], note["content"] = turning, turning, "words"
			note["attachment"] = []any{vocab.Doc{"type": "Document", "url": s.p.Origin + "/i.png", "name": turning}}
			note["tag"] = append(note["tag"].([]any), vocab.Doc{"type": "Hashtag", "name": "#" + turning, "href": s.p.Origin + "/tags/turned"})
		})
		s.settle()
		shows := string(s.alice.Ask(s, http.MethodGet, "/api/feed?limit=30", nil).Body)
		if !strings.Contains(shows, note) || strings.Count(shows, "tur  ned")+strings.Count(shows, "tur ned") != 4 || strings.ContainsAny(shows, "\u202e\u2067\u200f\u0085") || strings.Contains(shows, `\u001b`) {
			s.Errorf("the note is shown as %q", shows)
		}
	}},
	{id: "PAR-07", sends: "1e999, 30,000 digits, -0, 2^64, and such counts in a poll", happens: "400 for what no double holds; counts that cannot be are not counted", changes: true, play: func(s *siege) {
		s.unchanged(func() {
			for _, number := range []string{"1e999", "-1e999", "1e-999", "1e99999999999999999999", strings.Repeat("9", 30_000), "0." + strings.Repeat("0", 30_000) + "1", "01", "+1", ".5", "1.", "0x10", "1_000", "NaN", "Infinity", "--1"} {
				s.spurned(s.with("number", `"x":`+number))
			}
		})
		counts := []string{"-0", "18446744073709551616", "-5", "1.5", "1e300", `"7"`, "null", "[1]"}
		for n, count := range counts {
			name := fmt.Sprint("poll", n)
			body := fmt.Sprintf(`{"id":%q,"type":"Create","actor":%q,"to":[%q,"as:Public"],"object":{"id":%q,"type":"Question","attributedTo":%q,"to":"as:Public","content":"which?","votersCount":%s,"oneOf":[{"type":"Note","name":"a","replies":{"type":"Collection","totalItems":%s}}]}}`,
				s.id(s.mallory, name), s.mallory.ID, s.alice.ID, s.id(s.mallory, name+"-note"), s.mallory.ID, count, count)
			s.accepted(s.text(body))
			s.accepted(s.text(strings.Replace(strings.Replace(body, `"Create"`, `"Update"`, 1), s.id(s.mallory, name), s.id(s.mallory, name+"-update"), 1)))
		}
		shown := s.feed()
		for n, count := range counts {
			if got := shown[s.id(s.mallory, fmt.Sprintf("poll%d-note", n))]; got != "which?" {
				s.Errorf("a poll with the count %s reads %q", count, got)
			}
		}
		s.wholesome()
	}},
	{id: "PAR-08", sends: "JSON with words after it, two documents, comments, trailing commas, lists, single values, nothing", happens: "400", asks: 6, play: func(s *siege) {
		like := s.with("like", `"x":1`)
		bad := []string{like + like, like + "x", like + ",", like + "\x00", "// a\n" + like, like + "/* a */", strings.Replace(like, "}", ",}", 1), "[" + like + "]", strings.ReplaceAll(like, `"`, "'"), "1", `"x"`, "null", "true", " ", "{}", "{", like[:len(like)-1]}
		s.spurned(bad...)
		s.ignored(bad[0], bad[7])
	}},
	{id: "PAR-09", sends: "notes of 126 kB nested tags, 10,000 attributes, scripts, event handlers, javascript: and entities, articles of 500 kB, and longer ones; javascript: and data: as addresses of pages, pictures, attachments and tags", happens: "202; the API shows their words as sanitized HTML and as plain text, made in linear time, in pages of 4 MiB at most, and addresses of the web and of mail alone; 400 for a note beyond 128 KiB", changes: true, play: func(s *siege) {
		contents := map[string]string{
			"nested": strings.Repeat("<b>", 18_000) + "words" + strings.Repeat("</b>", 18_000), "lists": strings.Repeat("<ul><li>", 16_000) + "words", "pre": strings.Repeat("<pre>", 26_000) + "words",
			"attributes": "<p" + repeated(10_000, ` a%d="x"`) + ">words</p>", "open": strings.Repeat("<a ", 43_000) + ">words", "quotes": strings.Repeat(`<a title="`, 13_000) + `">words`,
			"comments": strings.Repeat("<!--", 32_000) + "-->words", "entities": strings.Repeat("&amp", 32_000) + "words", "cdata": strings.Repeat("<![CDATA[", 14_000) + ">words",
			"script": "<script>alert(1)</script><style>*{x}</style>words", "svg": `<svg onload="alert(1)"><script>alert(1)</script></svg>words`, "mutated": `<noscript><p title="</noscript><img src=x onerror=alert(1)>">words`,
			"href": `<a href="javascript:alert(1)">words</a>`, "frame": `<iframe srcdoc="<script>alert(1)</script>">alert(1)</iframe>words`, "textarea": `<textarea></textarea><script>alert(1)</script>words`,
		}
		notes := map[string]string{}
		for n := range 6 {
			contents[fmt.Sprint("large", n)] = strings.Repeat("<b>words</b> ", 39_000)
		}
		for name, content := range contents {
			notes[name] = s.write(name, func(note vocab.Doc) {
				if note["content"] = content; name[0] == 'l' && name != "lists" {
					note["type"] = "Article"
				}
			})
		}
		for n, bad := range []string{"javascript:alert(1)", " JaVa\tScript:alert(1)", "data:text/html,<script>alert(1)</script>", "vbscript:x"} {
			name := fmt.Sprint("address", n)
			notes[name] = s.write(name, func(note vocab.Doc) {
				link := vocab.Doc{"type": "Link", "href": bad}
				note["content"], note["url"], note["image"], note["location"] = "words", []any{bad, link}, bad, bad
				note["icon"] = vocab.Doc{"type": "Image", "url": link}
				note["attachment"] = []any{vocab.Doc{"type": "Document", "url": bad, "href": bad, "src": bad}, vocab.Doc{"type": "Image", "url": []any{link}}, bad}
				note["tag"] = append(note["tag"].([]any), vocab.Doc{"type": "Hashtag", "name": "#x", "href": bad}, vocab.Doc{"type": "Emoji", "name": ":x:", "icon": vocab.Doc{"url": bad}})
			})
		}
		for member, much := range map[string]any{"content": strings.Repeat("x", 128<<10+1), "name": strings.Repeat("x", 4<<10+1), "tag": slices.Repeat([]any{vocab.Doc{"type": "Hashtag"}}, 257), "attachment": slices.Repeat([]any{vocab.Doc{}}, 65)} {
			create := s.create(s.mallory, "much-"+member)
			create["object"].(vocab.Doc)[member] = much
			if got := s.post(s.mallory, s.alice.ID+"/inbox", create); got.Status != http.StatusBadRequest || !strings.Contains(string(got.Body), "/object/"+member) {
				s.Errorf("too much of %s was answered %d %.200s", member, got.Status, got.Body)
			}
		}
		html := strings.ToLower(string(s.alice.Ask(s, http.MethodGet, "/api/feed?limit=30", nil).Body))
		for _, harm := range []string{"onload", "onerror", "javascript:", "script:alert", "vbscript:", "data:text", "srcdoc", "alert(1)</script>"} {
			if strings.Contains(html, harm) {
				s.Errorf("the feed shows %s", harm)
			}
		}
		shown := s.feed()
		for name, note := range notes {
			got, there := shown[note]
			if !there || strings.Contains(got, "<b>") || strings.Contains(got, "onload") || !strings.HasSuffix(strings.TrimSpace(got), "words") && name != "quotes" && name[0] != 'l' {
				s.Errorf("%s reads %.100q … %q", name, got, got[max(0, len(got)-100):])
			}
		}
		s.wholesome()
	}},
	{id: "PAR-09b", sends: "notes whose markup sanitizers have died of: broken math and svg, foreign content, templates", happens: "202; each of them and the feed around it can be read", changes: true, play: func(s *siege) {
		var notes []string
		for n, content := range []string{"<math><annotation-xml encoding=\"text/html\"><svg><foreignobject><math><mi><mglyph><style><!--</style><img>", "<svg></p><style><g title=\"</style>\">", "<math></svg></math><mtext><table><mglyph><style>",
			"<template><template></template><table><tr><template>", "<math><mi><svg><desc><p></math>", "<svg><![CDATA[</svg>]]>", "<frameset><frame></frameset>", "<plaintext>", "<select><option><select>", "<\ufffdmath>", "</", "<", "<!", "<!-", "&#x110000;&#0;&#xd800;"} {
			notes = append(notes, s.write(fmt.Sprint("math", n), func(note vocab.Doc) { note["content"] = content }))
		}
		for n, wrong := range []any{nil, 7, []any{"a", vocab.Doc{}}, vocab.Doc{"x": "y"}, true} {
			notes = append(notes, s.write(fmt.Sprint("wrong", n), func(note vocab.Doc) {
				note["content"], note["summary"], note["contentMap"], note["source"] = wrong, wrong, wrong, wrong
			}))
		}
		shown := s.feed()
		for _, note := range notes {
			if _, there := shown[note]; !there {
				s.Errorf("the feed does not show %s", note)
			}
		}
		s.wholesome()
	}},
	{id: "PAR-10", sends: "texts, handles, names and headers made to keep a regular expression busy", happens: "answered at once: what is not parsed by hand is matched in linear time", changes: true, play: func(s *siege) {
		for n, trap := range []string{"@a", "@a@", "#", "a.", ":a", "http://", "(((", "a@a."} {
			s.write(fmt.Sprint("trap", n), func(note vocab.Doc) {
				note["content"] = strings.Repeat(trap, 18_000)
				note["tag"] = []any{vocab.Doc{"type": "Mention", "href": s.alice.ID, "name": strings.Repeat(trap, 10_000)}, vocab.Doc{"type": "Hashtag", "name": strings.Repeat(trap, 10_000)}}
			})
			long := strings.Repeat(trap, 2_000)
			s.answered(s.alice.Try(s, "Follow", map[string]any{"actorUri": long}), 422)
			s.answered(enginetest.Fetch(s, s.home.URL+"/.well-known/webfinger?resource="+url.QueryEscape("acct:"+long)), 400, 404)
			for _, header := range []string{"Accept", "If-None-Match", "Authorization", "Content-Type"} {
				s.answered(s.forge(peertest.Forgery{Method: http.MethodGet, URL: s.alice.ID, After: func(r *http.Request) { r.Header.Set(header, long) }}), 200, 400, 401, 406)
			}
		}
		s.wholesome()
	}},
	{id: "PAR-11", sends: "contexts that rename actor and type, type beside another @type, @graph, @nest, prefixes", happens: "400 where two names contradict each other or a name is missing; contexts change nothing", changes: true, play: func(s *siege) {
		carol := `"` + string(s.carol.ID) + `"`
		s.unchanged(func() {
			s.spurned(s.with("type", `"@type":"Delete"`), s.with("id", `"@id":`+carol), `{"@context":"https://www.w3.org/ns/activitystreams","@graph":[`+s.with("graph", `"x":1`)+`]}`,
				strings.Replace(s.with("nest", `"x":1`), `"actor":`, `"x-actor":`, 1), `{"@nest":`+s.with("nest", `"x":1`)+`}`, strings.Replace(s.with("prefix", `"x":1`), `"actor":`, `"as:actor":`, 1),
				strings.Replace(s.with("uri", `"x":1`), `"object":`, `"https://www.w3.org/ns/activitystreams#object":`, 1), s.with("value", `"@value":"x"`)[:20])
		})
		for n, context := range []string{`{"actor":"https://example.org/x","doer":"as:actor"}`, `["https://www.w3.org/ns/activitystreams",{"type":"@id","Like":"as:Delete","object":{"@id":"as:actor","@type":"@id"}}]`, `{"@base":"` + s.q.Origin + `/","@vocab":"https://example.org/#"}`} {
			name := fmt.Sprint("context", n)
			s.accepted(s.text(s.with(name, `"@context":`+context+`,"doer":`+carol)))
			s.settle()
			if got := s.count("lightweb_alice", `SELECT count(*) FROM reactions WHERE activity_uri = $1 AND actor_uri = $2 AND type = 'Like'`, s.id(s.mallory, name), s.mallory.ID); got != 1 {
				s.Errorf("with the context %s the Like counts %d times as mallory's, want once", context, got)
			}
		}
	}},
	{id: "PAR-12", sends: "entity bombs and external entities in host-meta, and in place of documents", happens: "401, 422 or dropped: no XML is parsed, and no host-meta asked for", asks: 4, play: func(s *siege) {
		bomb := `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]><XRD><Link rel="lrdd" template="` + s.q.Origin + `/{uri}"/>&b;&c;</XRD>`
		s.p.Serve("/.well-known/host-meta", []byte(bomb))
		s.p.Serve("/.well-known/webfinger", []byte(bomb))
		s.answered(s.alice.Try(s, "Follow", map[string]any{"actorUri": "@par-12@" + host(s.p.Origin)}), 422)
		s.ignored(bomb)
		if slices.Contains(s.p.Asked(), "/.well-known/host-meta") {
			s.Error("host-meta was asked for")
		}
	}},
	{id: "PAR-13", sends: "pictures of 60,000 by 60,000 points, files of two kinds at once, files that make converters write others", never: "media of others are not fetched: of a picture a note has the address. A picture that a user uploads is measured before it is decoded, and drawn anew (decision 44)"},
	{id: "PAR-14", sends: "120 connections over which head or body come byte by byte, headers of 1 MB, requests in one go, HTTP/2 without TLS", happens: "closed after 10 s; 431; all answered; refused. Others are served meanwhile", play: func(s *siege) {
		at := "Host: " + host(s.home.URL) + "\r\n"
		var all sync.WaitGroup
		for _, head := range []string{"GET /actor HTTP/1.1\r\n" + at + "X-Slow: ", "POST /inbox HTTP/1.1\r\n" + at + "Content-Type: " + vocab.ActivityJSON + "\r\nContent-Length: 100000\r\n\r\n", ""} {
			all.Go(func() { s.slowly(40, head) })
		}
		for range 20 {
			s.answered(enginetest.Fetch(s, s.alice.ID), 200)
		}
		s.answeredRaw("GET /actor HTTP/1.1\r\n"+at+"X: "+strings.Repeat("x", 1<<20)+"\r\n\r\n", 431, 0)
		s.answeredRaw("GET /actor HTTP/1.1\r\n"+at+strings.Repeat("X: x\r\n", 100_000)+"\r\n", 431, 0)
		if got := s.answers(strings.Repeat("GET /actor HTTP/1.1\r\n"+at+"\r\n", 50)); len(got) != 50 || slices.ContainsFunc(got, func(n int) bool { return n != 200 }) {
			s.Errorf("50 requests in one go were answered %v", got)
		}
		s.answeredRaw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, 405, 505)
		s.answeredRaw("GET /actor HTTP/1.1\r\n"+at+"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", 200)
		all.Wait()
	}},
	{id: "PAR-15", sends: "two lengths, lengths beside chunks, folded and bare lines, a target of another host than Host", happens: "400; beside chunks a length counts for nothing, as RFC 9112 says; the host that is signed for decides", play: func(s *siege) {
		at := "Host: " + host(s.home.URL) + "\r\n"
		inner := "GET /actor HTTP/1.1\r\n" + at + "\r\n"
		for _, head := range []string{"Content-Length: 2\r\nContent-Length: 30\r\n\r\n{}", "Content-Length: 2, 30\r\n\r\n{}", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
			"Transfer-Encoding: identity\r\n\r\n{}", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2;x=\"\n\"\r\n{}\r\n0\r\n\r\n",
			"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}\r\n0\r\n\r\n", "Bad\x00Name: x\r\n\r\n", "Bad Name: x\r\n\r\n", ": x\r\n\r\n", "X: a\x00b\r\n\r\n"} {
			s.answeredRaw("POST /inbox HTTP/1.1\r\n"+at+head, 400, 501)
		}
		if got := s.answers("POST /inbox HTTP/1.1\r\n" + at + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inner); len(got) > 2 || got[0] < 400 {
			s.Errorf("a length beside chunks was answered %v", got)
		}
		for _, request := range []string{"GET /actor HTTP/1.1\r\n\r\n", "GET /actor HTTP/1.1\r\n" + at + at + "\r\n", "GET /actor HTTP/1.1\r\nHost: a b\r\n\r\n", "GET /actor HTTP/9.9\r\n" + at + "\r\n", "GET  /actor HTTP/1.1\r\n" + at + "\r\n",
			"GET /actor\r\n\r\n", "GET actor HTTP/1.1\r\n" + at + "\r\n", "get\x00 /actor HTTP/1.1\r\n" + at + "\r\n"} {
			s.answeredRaw(request, 400, 505)
		}
		for _, target := range []string{"http://other.example/inbox", "//other.example/inbox", "http://other.example:80/users/alice/inbox"} {
			s.answered(s.forge(peertest.Forgery{After: func(r *http.Request) { r.URL.Opaque = target }}), 400, 401, 404)
		}
	}},
	{id: "PAR-16", sends: "other media types: two profiles, two types, text, multipart, parameters that cannot be read; in requests and in answers", happens: "415; what is fetched under such a type is dropped", asks: 13, play: func(s *siege) {
		types := []string{"", "application/json", "text/plain", "multipart/form-data; boundary=x", `application/ld+json`, `application/ld+json; profile="https://www.w3.org/ns/activitystreams"; profile="x"`, `application/ld+json; profile="x"`,
			"application/activity+json, text/html", "application/activity+json; charset", `application/ld+json; profile="https://www.w3.org/ns/activitystreams`, "application/activity+jsonx", "application/activity+json/x", "*/*"}
		for _, kind := range types {
			s.answered(s.forge(peertest.Forgery{Before: func(r *http.Request) { r.Header.Set("Content-Type", kind) }}), 415)
		}
		s.answered(s.forge(peertest.Forgery{Before: func(r *http.Request) { r.Header["Content-Type"] = []string{vocab.ActivityJSON, "text/html"} }}), 415)
		for n, kind := range types {
			path := fmt.Sprint("/par-16-", n)
			object := s.show(path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{kind}
				_, _ = w.Write(s.served(path).JSON()) // the engine may have hung up
			})
			s.accepted(s.boost(object))
		}
	}},
	{id: "PAR-17", sends: "small activities without end, of types nobody knows, under ever new ids", happens: "202 and nothing is kept when they concern nobody here; 429 beyond `limits.inbox_actor_rate` and `limits.inbox_host_rate`", asks: 3, play: func(s *siege) {
		for n := range 100 {
			s.accepted(s.post(s.mallory, s.home.URL+"/inbox", vocab.Doc{"id": s.id(s.mallory, fmt.Sprint("nothing", n)), "type": fmt.Sprint("Unheard", n), "actor": string(s.mallory.ID), "object": s.q.Origin + "/x", "to": []any{string(vocab.Public)}}))
		}
		limited := enginetest.Start(s, "LIGHTWEB_LIMITS_INBOX_RATE=", "LIGHTWEB_LIMITS_INBOX_ACTOR_RATE=1/min burst 10", "LIGHTWEB_LIMITS_INBOX_HOST_RATE=1/min burst 15")
		user := limited.CreateUser(s, "limited")
		taken := func(a *peertest.Actor) (n int) {
			for i := range 30 {
				answer := s.post(a, user.ID+"/inbox", vocab.Doc{"id": s.id(a, fmt.Sprint("more", i)), "type": "Unheard", "actor": string(a.ID)})
				if s.answered(answer, 202, 429); answer.Status == http.StatusAccepted {
					n++
				}
			}
			return n
		}
		const late = 2 // the limit may admit that many more while the test runs
		first := taken(s.mallory)
		if first < 10 || first > 10+late {
			s.Errorf("%d activities of one actor were taken, want 10", first)
		}
		if n := first + taken(s.p.Actor("/users/par-17")); n > 15+late {
			s.Errorf("%d activities of one host were taken, want 15 at most", n)
		}
		if n := taken(s.carol); n < 10 {
			s.Errorf("%d activities of another host were taken, want 10", n)
		}
	}},
	{id: "PAR-18", sends: "ids, types and links longer than an index can hold, and long texts in every place that is searched by", happens: "400 for ids beyond 1,024 and types beyond 255 bytes; all else is taken, and nothing is set aside", changes: true, play: func(s *siege) {
		s.unchanged(func() {
			s.spurned(s.with(strings.Repeat("x", 1024), `"x":1`), s.with("type", `"y":1`)[:10], strings.Replace(s.with("type", `"x":1`), `"Like"`, `"`+strings.Repeat("T", 256)+`"`, 1),
				strings.Replace(s.with("object", `"x":1`), s.note, s.note+strings.Repeat("x", 1024), 1), strings.Replace(s.with("object", `"x":1`), s.note, s.note+random(1<<19), 1))
		})
		long := s.p.Origin + "/" + random(900)
		for n, change := range []func(note vocab.Doc){
			func(note vocab.Doc) { note["inReplyTo"] = random(10_000) },
			func(note vocab.Doc) { note["inReplyTo"] = []any{long + "a", long + "b", long + "c", long + "d"} },
			func(note vocab.Doc) { note["inReplyTo"] = vocab.Doc{"type": "Note", "content": random(10_000)} },
			func(note vocab.Doc) {
				note["attributedTo"] = []any{string(s.mallory.ID), s.p.Origin + "/" + random(900)}
			},
			func(note vocab.Doc) {
				note["tag"] = []any{vocab.Doc{"type": "Hashtag", "name": random(100_000), "href": long}}
			},
			func(note vocab.Doc) { note["lwMetadata"] = vocab.Doc{"tags": slices.Repeat([]any{random(100)}, 5_000)} },
			func(note vocab.Doc) { note["lwMetadata"] = vocab.Doc{"tags": random(500_000)} },
			func(note vocab.Doc) {
				note["name"], note["summary"], note["url"], note["published"] = random(4_000), random(4_000), random(100_000), random(100_000)
			},
			func(note vocab.Doc) { note["type"] = []any{"Note", strings.Repeat("T", 255), "x:" + random(200)} },
			func(note vocab.Doc) { note["cc"] = slices.Repeat([]any{long}, 900) },
			func(note vocab.Doc) { note[random(100_000)] = vocab.Doc{random(100_000): random(100_000)} },
		} {
			s.write(fmt.Sprint("long", n), change)
		}
		s.wholesome()
	}},
	{id: "PAR-19", sends: "keys on hundreds of hosts that do not answer", happens: "503 or 401; nothing of them is stored, and what is remembered has bounds", play: func(s *siege) {
		hosts := s.count("lightweb", `SELECT count(*) FROM hosts`) + s.count("lightweb", `SELECT count(*) FROM actors`)
		for n := range 300 {
			s.answered(s.claim("", fmt.Sprintf("http://127.1.%d.%d:9/par-19", n/250, n%250+1), signature.RFC9421), 401, 503)
		}
		if got := s.count("lightweb", `SELECT count(*) FROM hosts`) + s.count("lightweb", `SELECT count(*) FROM actors`); got != hosts {
			s.Errorf("%d rows of hosts and actors were added", got-hosts)
		}
	}},
	{id: "PAR-20", sends: "hundreds of lookups of users, actors and handles that do not exist", happens: "404, 401, 422; nothing of them is stored", asks: 2 * 200, play: func(s *siege) {
		nobody := s.p.Origin + "/users/par-20-"
		actors := s.count("lightweb", `SELECT count(*) FROM actors`)
		for n := range 200 {
			name := fmt.Sprint("nobody", n)
			s.answered(enginetest.Fetch(s, s.home.URL+"/.well-known/webfinger?resource=acct:"+name+"@"+host(s.home.URL)), 404)
			s.answered(enginetest.Fetch(s, s.home.URL+"/users/"+name), 404)
			s.answered(enginetest.Fetch(s, s.home.URL+"/users/alice/objects/"+name), 404)
			s.unauthorized(s.claim("", nobody+name, signature.RFC9421))
			s.answered(s.alice.Try(s, "Follow", map[string]any{"actorUri": fmt.Sprintf("@%s@%s", name, host(s.p.Origin))}), 422)
		}
		if got := s.count("lightweb", `SELECT count(*) FROM actors`); got != actors {
			s.Errorf("%d actors were added", got-actors)
		}
	}},
}
