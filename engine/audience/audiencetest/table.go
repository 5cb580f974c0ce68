// Package audiencetest holds the truth table of audiences. For each kind of audience, it has the
// decisions about viewers and holders. Both engine/audience and the SQL predicates in db must
// agree with it.
package audiencetest

import (
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

// These are the actors in the table, and two collections. Circle is the collection of Carol's
// followers, and Others that of another actor's, Dave's. Carol is the author. Bob is the actor
// that the rows name most often.
const (
	Carol    = "https://carol.example/users/carol"
	Circle   = Carol + "/followers"
	Bob      = "https://bob.example/users/bob"
	Stranger = "https://stranger.example/users/s"
	Nora     = "https://carol.example/users/nora" // the neighbour, another user on carol's server
	Others   = "https://dave.example/users/dave/followers"
)

// Viewers are the columns of the table, in order.
var Viewers = []string{"nobody known", "stranger", "follower", "bob", "bob, who follows", "member by a group", "blocked follower", "blocked bob", "neighbour", "blocked neighbour", "author"}

// Holders are the columns of the table of edits, in order. Each is a user who has stored the
// edited object. "by own inbox" is a user whose own inbox got the edit from the author.
var Holders = []string{"stranger", "follower", "bob", "by own inbox"}

// Case is one audience, with the expected decisions. Each letter in Sees, Lists and Letter is the
// decision of one column: y for yes, n for no.
type Case struct {
	Name       string
	To         string // the addressing members of the document, as JSON
	Visibility string
	Sees       string // a letter for each of Viewers: whether the viewer may see the post
	Lists      string // a letter for each of Viewers: whether the author's collections list the post for the viewer
	NamesBob   bool   // whether the post names bob in to, cc or audience
	Hides      bool   // whether the post has bto or bcc, which are never stored
	Letter     string // a letter for each of Strangers: whether the post is a stranger's private message
}

// Strangers are the columns of Letter, in order. Each is a user who receives the post. The text
// says what makes the post a stranger's private message to that user, or not.
var Strangers = []string{"follows nobody", "follows carol", "is answered, in a circle of dave's"}

// Public is the id that addresses everybody.
const Public = string(vocab.Public)

// keys are members of an object. Their names are ids, which address nobody.
const keys = `"` + Public + `":1,"as:Public":1,"Public":1,"` + Bob + `":1,"` + Circle + `":1,"https://carol.example/#Public":1`

// Cases are the rows of the table.
var Cases = []Case{
	{Name: "everybody, listed", To: `"to":"` + Public + `"`, Visibility: "public", Sees: "yyyyyynnyny", Lists: "yyyyyynnyny", Letter: "nnn"},
	{Name: "everybody, by a short form", To: `"to":["as:Public"]`, Visibility: "public", Sees: "yyyyyynnyny", Lists: "yyyyyynnyny", Letter: "nnn"},
	{Name: "everybody, and bob", To: `"to":["` + Public + `","` + Bob + `"],"cc":"` + Circle + `"`, Visibility: "public", Sees: "yyyyyynnyny", Lists: "yyyyyynnyny", NamesBob: true, Letter: "nnn"},
	{Name: "everybody, unlisted", To: `"to":"` + Circle + `","cc":["Public"]`, Visibility: "unlisted", Sees: "yyyyyynnyny", Lists: "yyyyyynnyny", Letter: "nnn"},
	{Name: "followers", To: `"to":["` + Circle + `"]`, Visibility: "followers", Sees: "nnynyynnnny", Lists: "nnynynnnnny", Letter: "nnn"},
	{Name: "followers, in audience", To: `"audience":"` + Circle + `"`, Visibility: "followers", Sees: "nnynyynnnny", Lists: "nnnnnnnnnny", Letter: "nnn"},
	{Name: "followers, and bob", To: `"to":"` + Circle + `","cc":["` + Bob + `"]`, Visibility: "followers", Sees: "nnyyyynnnny", Lists: "nnynynnnnny", NamesBob: true, Letter: "nnn"},
	{Name: "bob", To: `"to":"` + Bob + `"`, Visibility: "direct", Sees: "nnnyyynnnny", Lists: "nnnnnnnnnny", NamesBob: true, Letter: "yny"},
	{Name: "bob, in audience", To: `"audience":["` + Bob + `"]`, Visibility: "direct", Sees: "nnnyyynnnny", Lists: "nnnnnnnnnny", NamesBob: true, Letter: "yny"},
	{Name: "bob, hidden", To: `"to":"` + Carol + `","bcc":"` + Bob + `"`, Visibility: "direct", Sees: "nnnyyynnnny", Lists: "nnnnnnnnnny", Hides: true, Letter: "yny"},
	{Name: "somebody else", To: `"to":"https://erin.example/erin"`, Visibility: "direct", Sees: "nnnnnynnnny", Lists: "nnnnnnnnnny", Letter: "yny"},
	{Name: "somebody else, in objects with the names of others", To: `"to":{"id":"https://erin.example/erin",` + keys + `},"cc":{"id":"https://erin.example/erin",` + keys + `},"audience":{` + keys + `}`,
		Visibility: "direct", Sees: "nnnnnynnnny", Lists: "nnnnnnnnnny", Letter: "yny"},
	{Name: "the author alone, as to a group", To: `"to":"` + Carol + `"`, Visibility: "direct", Sees: "nnnnnynnnny", Lists: "nnnnnnnnnny", Letter: "yny"},
	{Name: "followers of dave", To: `"to":"` + Others + `"`, Visibility: "direct", Sees: "nnnnnynnnny", Lists: "nnnnnnnnnny", Letter: "ynn"},
	{Name: "everybody, in audience alone", To: `"audience":"` + Public + `"`, Visibility: "direct", Sees: "nnnnnynnnny", Lists: "nnnnnnnnnny", Letter: "yny"},
	{Name: "everybody, hidden", To: `"bto":"` + Public + `"`, Visibility: "direct", Sees: "nnnnnynnnny", Lists: "nnnnnnnnnny", Hides: true, Letter: "yny"},
	{Name: "everybody on carol's server", To: `"to":"https://carol.example/#Public"`, Visibility: "local", Sees: "nnnnnnnnyny", Lists: "nnnnnnnnyny", Letter: "nnn"},
	{Name: "everybody on carol's server, and bob", To: `"to":["https://carol.example/#Public"],"cc":["` + Bob + `"]`, Visibility: "local", Sees: "nnnnnnnnyny", Lists: "nnnnnnnnyny", NamesBob: true, Letter: "nnn"},
	{Name: "everybody on the stranger's server", To: `"to":"https://stranger.example/#Public"`, Visibility: "direct", Sees: "nnnnnynnnny", Lists: "nnnnnnnnnny", Letter: "yny"},
	{Name: "nobody said", To: `"name":"x"`, Visibility: "direct", Sees: "nnnnnynnnny", Lists: "nnnnnnnnnny", Letter: "yny"},
}

// Edit is a change of an object's audience, with the expected decision for each holder. Before
// and After are the names of two Cases.
type Edit struct {
	Before, After string
	Replaces      string // a letter for each of Holders: whether the holder gets the new version
}

// Edits are the rows of the table of edits. The new audience decides which holders get the new
// version. If the edit addresses nobody, the audience before the edit decides.
var Edits = []Edit{
	{"everybody, listed", "everybody, unlisted", "yyyy"},
	{"everybody, listed", "followers", "nyny"},
	{"everybody, and bob", "followers, and bob", "nyyy"},
	{"everybody, listed", "bob", "nnyy"},
	{"everybody, listed", "nobody said", "yyyy"},
	{"followers", "everybody, listed", "yyyy"},
	{"followers", "followers", "nyny"},
	{"followers", "bob", "nnyy"},
	{"followers", "somebody else", "nnny"},
	{"followers", "nobody said", "nyny"},
	{"bob", "bob", "nnyy"},
	{"bob", "somebody else", "nnny"},
	{"bob", "the author alone, as to a group", "nnny"},
	{"bob", "followers of dave", "nnny"},
	{"bob", "nobody said", "nnyy"},
	{"the author alone, as to a group", "the author alone, as to a group", "nnny"},
	{"the author alone, as to a group", "somebody else", "nnny"},
	{"everybody on carol's server", "everybody on carol's server", "nnnn"},
	{"everybody, listed", "everybody on carol's server", "nnnn"},
	{"nobody said", "nobody said", "yyyy"},
	{"nobody said", "somebody else", "nnny"},
}

// Doc returns a post of carol's with the addressing of the case.
func (c Case) Doc(t testing.TB) vocab.Doc {
	t.Helper()
	d, err := vocab.ParseDoc([]byte(`{"id":"` + Carol + `/notes/1","type":"Note","attributedTo":"` + Carol + `",` + c.To + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Object returns the post of Doc as a parsed object.
func (c Case) Object(t testing.TB) *vocab.Object {
	t.Helper()
	o, err := vocab.ObjectOf(c.Doc(t))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Named returns the case with a name.
func Named(t testing.TB, name string) Case {
	t.Helper()
	for _, c := range Cases {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no audience %q", name)
	return Case{}
}

// Yes reports whether the decision of a column is y. The parameter named of has one letter for
// each column.
func Yes(t testing.TB, of string, column int) bool {
	t.Helper()
	if column >= len(of) {
		t.Fatalf("%q has no column %d", of, column)
	}
	return of[column] == 'y'
}
