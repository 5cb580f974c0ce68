package inbox_test

import (
	"context"
	"slices"
	"testing"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/enginetest/peertest"
	"github.com/lightweb/lightweb/engine/vocab"
)

// publicAnswers lists the answers to alice's note that the public pages and collections show.
func publicAnswers(t *testing.T, s *peertest.Scene) (ids []string) {
	t.Helper()
	err := s.Store.Read(context.Background(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
		listed, err := tx.Threads.ListPublicAnswers(ctx, s.ID("us:/alice/notes/1"), nil, 10)
		for _, o := range listed {
			ids = append(ids, string(o.URI))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// isPublic reports whether dave's note is public as alice holds it.
func isPublic(t *testing.T, s *peertest.Scene) bool {
	t.Helper()
	var to vocab.Addressing
	err := s.Store.Read(context.Background(), s.Alice, func(ctx context.Context, tx *user.Tx) error {
		held, err := tx.Threads.Find(ctx, s.ID("p:/notes/1"))
		if err != nil {
			return err
		}
		o, err := held.Parse()
		if err == nil {
			to, err = held.AddressingOf(o)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return audience.IsPublic(to)
}

// A remote author makes a public answer less public. The public pages and collections show it no
// longer, also if the new audience does not include the user. A user outside of the new audience
// keeps the old words.
func TestAPostThatIsMadeLessPublicLeavesThePublicPages(t *testing.T) {
	const day = `"2026-01-0`
	note := func(to, content, n string) string {
		return `"to":` + to + `,"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","to":` + to +
			`,"inReplyTo":"us:/alice/notes/1","content":"` + content + `","published":"2026-01-01T00:00:00Z","updated":` + day + n + `T00:00:00Z"}}`
	}
	const public = `["as:Public","us:/alice"]`
	for name, tt := range map[string]struct {
		given func(*peertest.Scene)
		to    string
		want  string
	}{
		"for the followers of a stranger":      {nil, `"p:/dave/followers"`, "hello"},
		"for followers, of which alice is one": {func(s *peertest.Scene) { s.Follows("p:/dave") }, `"p:/dave/followers"`, "psst"},
		"for somebody else":                    {func(s *peertest.Scene) { s.Follows("p:/dave") }, `"p:/carol"`, "hello"},
		"for the user, by a stranger":          {nil, `"us:/alice"`, "hello"},
		"for everybody on the author's server": {nil, `"p:/#Public"`, "hello"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.Actor("p:/dave")
			if tt.given != nil {
				tt.given(s)
			}
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/1","type":"Create","actor":"p:/dave",`+note(public, "hello", "1"))
			if got := publicAnswers(t, s); len(got) != 1 {
				t.Fatalf("public answers: %q, want dave's", got)
			}
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/2","type":"Update","actor":"p:/dave",`+note(tt.to, "psst", "3"))
			if got := publicAnswers(t, s); len(got) != 0 {
				t.Errorf("public answers: %q, want none", got)
			}
			if got := contents(t, s); !slices.Equal(got, []string{tt.want}) {
				t.Errorf("alice holds %q, want %q", got, tt.want)
			}
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/3","type":"Update","actor":"p:/dave",`+note(public, "late", "2"))
			if got := publicAnswers(t, s); len(got) != 0 {
				t.Errorf("after an older Update, public answers: %q, want none", got)
			}
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/4","type":"Update","actor":"p:/dave",`+note(`"us:/alice"`, "more", "4"))
			if got := contents(t, s); tt.given == nil && !slices.Equal(got, []string{tt.want}) {
				t.Errorf("a stranger's private words came in without a request: %q", got)
			}
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/5","type":"Update","actor":"p:/dave",`+note(public, "open", "5"))
			if got := publicAnswers(t, s); len(got) != 1 {
				t.Errorf("after it is public again, public answers: %q, want dave's", got)
			}
		})
	}
}

// A public post addresses nobody itself, only its Create does. It is public above its answers as
// long as its author does not make it less public, also if the new audience does not include the
// user.
func TestAPostThatOnlyItsCreateAddressesIsMadeLessPublic(t *testing.T) {
	const note = `"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","content":"hello","published":"2026-01-01T00:00:00Z"`
	for name, tt := range map[string]struct {
		update   string
		isPublic bool
	}{
		"for somebody else, by its Update":                    {`"to":"p:/carol",` + note + `,"updated":"2026-01-03T00:00:00Z"}`, false},
		"for followers, of which alice is one, by its Update": {`"to":"p:/dave/followers",` + note + `,"updated":"2026-01-03T00:00:00Z"}`, false},
		"for alice, hidden, by its Update":                    {`"bcc":"us:/alice",` + note + `,"updated":"2026-01-03T00:00:00Z"}`, false},
		"for somebody else, itself":                           {`"to":"p:/carol",` + note + `,"to":"p:/carol","updated":"2026-01-03T00:00:00Z"}`, false},
		"for everybody, as before":                            {`"to":"as:Public",` + note + `,"updated":"2026-01-03T00:00:00Z"}`, true},
		"for nobody, as before":                               {note + `,"updated":"2026-01-03T00:00:00Z"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.Actor("p:/dave")
			s.Follows("p:/dave")
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/1","type":"Create","actor":"p:/dave","to":["as:Public","us:/alice"],`+note+`}}`)
			if !isPublic(t, s) {
				t.Fatal("the post is not public")
			}
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/2","type":"Update","actor":"p:/dave",`+tt.update+`}`)
			if got := isPublic(t, s); got != tt.isPublic {
				t.Errorf("public = %t, want %t", got, tt.isPublic)
			}
		})
	}
}

// A stranger cannot turn a public post into a private message past the requests, also if only its
// Create and its Update are addressed.
func TestAStrangersPostThatOnlyItsCreateAddressesBecomesNoPrivateMessage(t *testing.T) {
	s := newScene(t)
	s.Actor("p:/dave")
	const note = `"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","published":"2026-01-01T00:00:00Z"`
	s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/1","type":"Create","actor":"p:/dave","to":["as:Public","us:/alice"],`+note+`,"content":"hello"}}`)
	s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/2","type":"Update","actor":"p:/dave","to":"us:/alice",`+note+`,"content":"psst","updated":"2026-01-03T00:00:00Z"}}`)
	if got := contents(t, s); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("alice holds %q, want the words of the public post", got)
	}
}

// An Update that addresses nobody leaves the audience of a post as it was, also if only the Create
// of the post was public.
func TestAnUpdateForNobodyOpensNoNarrowedPost(t *testing.T) {
	const note = `"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","published":"2026-01-01T00:00:00Z"`
	s := newScene(t)
	s.Actor("p:/dave")
	s.Follows("p:/dave")
	const public, followers = `"to":["as:Public","us:/alice"],`, `"to":"p:/dave/followers",`
	s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/1","type":"Create","actor":"p:/dave",`+public+note+`,`+public+`"content":"hello"}}`)
	s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/2","type":"Update","actor":"p:/dave",`+followers+note+`,`+followers+`"content":"psst","updated":"2026-01-02T00:00:00Z"}}`)
	s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/3","type":"Update","actor":"p:/dave",`+note+`,"content":"psst 2","updated":"2026-01-03T00:00:00Z"}}`)
	if got := contents(t, s); !slices.Equal(got, []string{"psst 2"}) {
		t.Errorf("alice holds %q, want the last words", got)
	}
	if isPublic(t, s) {
		t.Error("the private words are public")
	}
}

// A post that names its recipients only in bto or bcc is not public, even if its Create is. The
// mark of a narrowed post is only on one that was public.
func TestAPostWithHiddenRecipientsIsNotPublic(t *testing.T) {
	const (
		note   = `"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","published":"2026-01-01T00:00:00Z"`
		hidden = `"bcc":"us:/alice",`
		public = `"to":["as:Public","us:/alice"],`
		edited = `"content":"psst","updated":"2026-01-02T00:00:00Z"}}`
	)
	for name, tt := range map[string]struct {
		create, update string
		want, marked   string
	}{
		"from the start":                    {create: public + note + `,` + hidden + `"content":"hello"}}`, want: "hello"},
		"from the start, with an edit":      {hidden + note + `,` + hidden + `"content":"hello"}}`, hidden + note + `,` + hidden + edited, "psst", ""},
		"from the start, with its Update":   {hidden + note + `,` + hidden + `"content":"hello"}}`, hidden + note + `,` + edited, "psst", ""},
		"after an edit":                     {public + note + `,"content":"hello"}}`, hidden + note + `,` + hidden + edited, "psst", "true"},
		"after an edit of an open post":     {public + note + `,` + public + `"content":"hello"}}`, hidden + note + `,` + hidden + edited, "psst", "true"},
		"after an edit with an open Update": {public + note + `,"content":"hello"}}`, public + note + `,` + hidden + edited, "psst", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.Actor("p:/dave")
			s.Follows("p:/dave")
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/1","type":"Create","actor":"p:/dave",`+tt.create)
			if tt.update != "" {
				s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/2","type":"Update","actor":"p:/dave",`+tt.update)
			}
			if got := contents(t, s); !slices.Equal(got, []string{tt.want}) {
				t.Errorf("alice holds %q, want %q", got, tt.want)
			}
			if isPublic(t, s) {
				t.Error("the post is public")
			}
			if got := s.Column(t, s.Alice, `SELECT coalesce(raw ->> '`+vocab.Narrowed+`', '') FROM objects WHERE raw ->> 'type' = 'Note'`); !slices.Equal(got, []string{tt.marked}) {
				t.Errorf("marked as narrowed: %q, want %q", got, tt.marked)
			}
		})
	}
}

// A private Update comes before the public Create of a post without addressing of its own. The
// private words do not become public with the Create.
func TestAnUpdateBeforeItsCreateKeepsItsAudience(t *testing.T) {
	const note = `"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","published":"2026-01-01T00:00:00Z"`
	for name, to := range map[string]string{"open": `"to":"us:/alice",`, "hidden": `"bcc":"us:/alice",`} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.Actor("p:/dave")
			s.Follows("p:/dave")
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/2","type":"Update","actor":"p:/dave",`+to+note+`,"content":"psst","updated":"2026-01-02T00:00:00Z"}}`)
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/1","type":"Create","actor":"p:/dave","to":["as:Public","us:/alice"],`+note+`,"content":"hello"}}`)
			if got := contents(t, s); !slices.Equal(got, []string{"psst"}) {
				t.Errorf("alice holds %q, want the words of the Update", got)
			}
			if isPublic(t, s) {
				t.Error("the private words are public")
			}
		})
	}
}

// The user blocks the author of a public answer, who then makes it less public. The public pages do
// not show it again once the block is undone.
func TestAPostThatABlockedAuthorMakesLessPublicStaysHidden(t *testing.T) {
	const day = `"2026-01-0`
	note := func(to, content, n string) string {
		return `"to":` + to + `,"object":{"id":"p:/notes/1","type":"Note","attributedTo":"p:/dave","to":` + to +
			`,"inReplyTo":"us:/alice/notes/1","content":"` + content + `","published":"2026-01-01T00:00:00Z","updated":` + day + n + `T00:00:00Z"}}`
	}
	for name, tt := range map[string]struct {
		to   string
		want int
	}{
		"for followers": {`"p:/dave/followers"`, 0},
		"for everybody": {`"as:Public"`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.Actor("p:/dave")
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/1","type":"Create","actor":"p:/dave",`+note(`["as:Public","us:/alice"]`, "hello", "1"))
			s.Act("p:/dave", `{"id":"us:/alice/blocks/1","type":"Block","actor":"us:/alice","object":"p:/dave"}`)
			s.MustSend("p:/dave", "us:/inbox", `{"id":"p:/a/2","type":"Update","actor":"p:/dave",`+note(tt.to, "psst", "2"))
			s.Act("p:/dave", `{"id":"us:/alice/undos/1","type":"Undo","actor":"us:/alice","object":{"id":"us:/alice/blocks/1","type":"Block","actor":"us:/alice","object":"p:/dave"}}`)
			if got := publicAnswers(t, s); len(got) != tt.want {
				t.Errorf("public answers: %q, want %d", got, tt.want)
			}
			if got := contents(t, s); !slices.Equal(got, []string{"hello"}) {
				t.Errorf("alice holds %q, want the words from before the block", got)
			}
		})
	}
}
