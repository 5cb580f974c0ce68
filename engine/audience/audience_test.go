package audience_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/audience"
	. "github.com/lightweb/lightweb/engine/audience/audiencetest"
	"github.com/lightweb/lightweb/engine/vocab"
)

var update = flag.Bool("update", false, "write docs/audience.md")

// viewers are the viewers of the table, one for each column.
var viewers = []audience.Viewer{
	{},
	{ID: Stranger},
	{ID: Stranger, Circles: []vocab.ID{Circle}},
	{ID: Bob},
	{ID: Bob, Circles: []vocab.ID{Circle}},
	{ID: Stranger, ByGroup: true},
	{ID: Stranger, Circles: []vocab.ID{Circle}, Blocked: true},
	{ID: Bob, Blocked: true},
	{ID: Nora},
	{ID: Nora, Blocked: true},
	{ID: Carol},
}

var holders = []audience.Viewer{
	{ID: Stranger},
	{ID: Stranger, Circles: []vocab.ID{Circle}},
	{ID: Bob},
	{ID: Stranger, Sent: true},
}

var strangers = []audience.Recipient{
	{Viewer: audience.Viewer{ID: Stranger}},
	{Viewer: audience.Viewer{ID: Stranger, Circles: []vocab.ID{Circle}}, Known: true},
	{Viewer: audience.Viewer{ID: Stranger, Circles: []vocab.ID{Others}}, Answers: true},
}

func of(t *testing.T, c Case) audience.Audience { return audience.OfObject(c.Object(t), Circle) }

func TestTruthTable(t *testing.T) {
	t.Parallel()
	for _, c := range Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			a := of(t, c)
			if got := a.Visibility(); got != c.Visibility {
				t.Errorf("Visibility() = %q, want %q", got, c.Visibility)
			}
			if got := a.IsPrivate(); got != (c.Visibility == audience.Direct) {
				t.Errorf("IsPrivate() = %t of what is %s", got, c.Visibility)
			}
			if got := audience.NamesOpenly(c.Object(t).Addressing, Bob); got != c.NamesBob {
				t.Errorf("NamesOpenly(bob) = %t, want %t", got, c.NamesBob)
			}
			for n, v := range viewers {
				if got := a.MaySee(v); got != Yes(t, c.Sees, n) {
					t.Errorf("MaySee(%s) = %t", Viewers[n], got)
				}
				if got := isListed(c.Object(t).Addressing, v); got != Yes(t, c.Lists, n) {
					t.Errorf("listed to %s: %t", Viewers[n], got)
				}
			}
			for n, r := range strangers {
				if got := audience.IsLetterOfStranger(a, r); got != Yes(t, c.Letter, n) {
					t.Errorf("IsLetterOfStranger(%s) = %t", Strangers[n], got)
				}
			}
		})
	}
}

// isListed reports whether carol's collections show her object to a viewer. Carol sees all items,
// and an actor that she blocks sees none.
func isListed(to vocab.Addressing, v audience.Viewer) bool {
	if v.ID == Carol {
		return true
	}
	return !v.Blocked && slices.ContainsFunc(audience.Lists(Carol, v), func(id vocab.ID) bool { return slices.Contains(slices.Concat(to.To, to.Cc), id) })
}

func TestEdits(t *testing.T) {
	t.Parallel()
	for _, e := range Edits {
		t.Run(e.Before+" to "+e.After, func(t *testing.T) {
			t.Parallel()
			before, after := of(t, Named(t, e.Before)), of(t, Named(t, e.After))
			for n, h := range holders {
				if got := audience.MayReplace(before, after, h); got != Yes(t, e.Replaces, n) {
					t.Errorf("MayReplace(%s) = %t", Holders[n], got)
				}
			}
		})
	}
}

// An edit is for the actors that its activity addresses and for those that its object addresses.
func TestWith(t *testing.T) {
	t.Parallel()
	a := of(t, Named(t, "somebody else")).With(Named(t, "bob").Object(t).Addressing)
	if !a.Names(Bob) || !a.Names("https://erin.example/erin") || a.IsPublic() {
		t.Errorf("%+v does not name both", a)
	}
	if b := of(t, Named(t, "somebody else")).With(vocab.Addressing{To: []vocab.ID{vocab.Public}}); !b.IsPublic() {
		t.Errorf("%+v is not public", b)
	}
}

// If the engine does not know the author's followers collection, a post for followers is for
// nobody. That is the most private audience.
func TestUnknownFollowers(t *testing.T) {
	t.Parallel()
	a := audience.OfObject(Named(t, "followers").Object(t), "")
	if a.IncludesFollowers() || a.Visibility() != audience.Direct || a.MaySee(audience.Viewer{ID: Stranger}) {
		t.Errorf("%+v is for somebody", a)
	}
}

func TestPageShowsTheTable(t *testing.T) {
	t.Parallel()
	const page = "../../docs/audience.md"
	want := render()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("docs/audience.md is not the table (%v): go test ./engine/audience -update", err)
	}
}

const intro = `# Audience

The package ` + "`engine/audience`" + ` alone decides the readers of a post. This page is written from the
truth table that is its test (` + "`go test ./engine/audience -update`" + `); the same table is run through
the SQL form in ` + "`db/user/audience.go`" + `.

Carol is the author, and a neighbour another user of carol's server. *Everybody* counts in
` + "`to` and `cc`" + ` alone. A post that is only for the followers of somebody else is *direct*. A member
by a group got the post from carol's server, and stands in no document.

`

func render() string {
	var b strings.Builder
	b.WriteString(intro)
	section(&b, "Readers of a post", append([]string{"for", "visibility"}, Viewers...), func(c Case) []string {
		return append([]string{c.Name, c.Visibility}, words(c.Sees)...)
	})
	section(&b, "Readers in carol's collections", append([]string{"for"}, Viewers...), func(c Case) []string {
		return append([]string{c.Name}, words(c.Lists)...)
	})
	section(&b, "Private messages of strangers", append([]string{"for"}, Strangers...), func(c Case) []string {
		return append([]string{c.Name}, words(c.Letter)...)
	})
	b.WriteString("## Recipients of an edit\n\nAn edit is for the recipients that it addresses. Others keep the words that they have. If the post\n" +
		"was public and is not any longer, their copy leaves the public pages and collections.\n\n")
	row(&b, append([]string{"was for", "is for"}, Holders...))
	line(&b, 2+len(Holders))
	for _, e := range Edits {
		row(&b, append([]string{e.Before, e.After}, words(e.Replaces)...))
	}
	return b.String()
}

func section(b *strings.Builder, title string, head []string, of func(Case) []string) {
	b.WriteString("## " + title + "\n\n")
	row(b, head)
	line(b, len(head))
	for _, c := range Cases {
		row(b, of(c))
	}
	b.WriteString("\n")
}

func row(b *strings.Builder, cells []string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

func line(b *strings.Builder, n int) { b.WriteString(strings.Repeat("|---", n) + "|\n") }

func words(of string) []string {
	out := make([]string, len(of))
	for n, c := range of {
		out[n] = map[rune]string{'y': "yes", 'n': "–"}[c]
	}
	return out
}

// Counterpart returns the same id for all spellings of that id in the addressing.
func TestCounterpart(t *testing.T) {
	t.Parallel()
	const other = "https://erin.example/erin"
	for _, tt := range []struct {
		name string
		to   vocab.Addressing
		want vocab.ID
	}{
		{"one other, spelled in another way", vocab.Addressing{To: []vocab.ID{Bob, "https://ERIN.example:443/erin"}}, other},
		{"one other, twice", vocab.Addressing{To: []vocab.ID{"https://Erin.example/erin"}, Cc: []vocab.ID{other}}, other},
		{"two others", vocab.Addressing{To: []vocab.ID{other, Stranger}}, ""},
		{"nobody else", vocab.Addressing{To: []vocab.ID{Bob}}, ""},
	} {
		if got := audience.Counterpart(tt.to, Bob); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCommunitiesOfAPost(t *testing.T) {
	t.Parallel()
	const bees, ants = vocab.ID("https://lemmy.example/c/bees"), vocab.ID("https://lemmy.example/c/ants")
	named := []vocab.ID{vocab.Public, Carol, Circle, bees, ants, bees}
	for _, tt := range []struct {
		name string
		to   vocab.Addressing
		want []vocab.ID
	}{
		{"public", vocab.Addressing{To: []vocab.ID{vocab.Public}, Audience: named}, []vocab.ID{bees, ants}},
		{"unlisted", vocab.Addressing{Cc: []vocab.ID{vocab.Public}, Audience: named}, []vocab.ID{bees, ants}},
		{"for followers", vocab.Addressing{To: []vocab.ID{Circle}, Audience: named}, nil},
		{"public in audience alone", vocab.Addressing{Audience: named}, nil},
		{"in no audience", vocab.Addressing{To: []vocab.ID{vocab.Public, bees}}, nil},
	} {
		if got := audience.Of(tt.to, Carol, Circle).Communities(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
