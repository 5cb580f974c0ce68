package registry

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxUserFile is the largest configuration of a user read, in bytes.
const maxUserFile = 1 << 20

// Bounds of a profile, in characters and lines.
const (
	MaxName       = 100
	MaxSummary    = 5000
	MaxFields     = 16
	MaxFieldName  = 255
	MaxFieldValue = 2047
	maxAliases    = 16
	MaxMentions   = 20
)

// User is what a user has settled about itself.
type User struct {
	Profile      Profile      `json:"profile"`
	FollowPolicy FollowPolicy `json:"follow_policy"`
	Quotes       Quotes       `json:"quotes"`
	Collections  Collections  `json:"collections"`
	Messaging    Messaging    `json:"messaging"`
	Permissions  Permissions  `json:"permissions"`
	Moderation   Moderation   `json:"moderation"`
	Discoverable bool         `json:"discoverable"` // may be suggested to others; consent is asked for, so false unless set
	Indexable    bool         `json:"indexable"`    // public posts may be searched (FEP-5feb); false unless set
	Languages    []string     `json:"languages"`    // read best first, such as "de" or "pt-BR", at most 16: posts in several are shown in the first of them
}

// Profile is what the actor document says about the person, as plain text.
type Profile struct {
	Name    string   `json:"name"`    // at most 100 characters
	Summary string   `json:"summary"` // at most 5000 characters
	Icon    vocab.ID `json:"icon"`    // the address of a picture, or nothing
	Image   vocab.ID `json:"image"`   // the address of a wide picture, or nothing
	Fields  []Field  `json:"fields"`  // at most 16

	MovedTo  vocab.ID   `json:"moved_to"` // the account that this one has become, or nothing; the followers are told of it
	Aliases  []vocab.ID `json:"aliases"`  // at most 16 other accounts of the person: they may move here
	Mentions []Mention  `json:"mentions"` // at most 20
}

// Field is a line of a profile, such as a home page.
type Field struct {
	Name  string `json:"name"`  // 1 to 255 characters
	Value string `json:"value"` // at most 2047 characters
}

// Mention is where a handle in the summary leads. The engine looks it up and writes it, so that an
// actor document is made without asking anybody.
type Mention struct {
	Handle string   `json:"handle"` // such as @bob@remote.example, in lower case
	URL    vocab.ID `json:"url"`    // of the actor's page
}

// PageOf returns where a handle in the summary leads, empty when nobody knows.
func (p *Profile) PageOf(handle string) string {
	for _, m := range p.Mentions {
		if m.Handle == strings.ToLower(handle) {
			return string(m.URL)
		}
	}
	return ""
}

// FollowPolicy says what becomes of a Follow.
type FollowPolicy string

// The follow policies.
const (
	AutoAccept       FollowPolicy = "auto_accept"
	ApprovalRequired FollowPolicy = "approval_required"
)

// Quotes says who may quote the user's posts (FEP-044f).
type Quotes string

// Those who may.
const (
	AnyoneQuotes   Quotes = "anyone"
	FollowersQuote Quotes = "followers"
	NobodyQuotes   Quotes = "nobody"
)

// Visibility says who may read a collection.
type Visibility string

// The visibilities.
const (
	Public Visibility = "public"
	Owner  Visibility = "owner"
)

// Collections says who may read the user's followers and the actors that the user follows.
type Collections struct {
	Followers Visibility `json:"followers"`
	Following Visibility `json:"following"`
}

// Messaging says who may write to the user in private.
type Messaging struct {
	Strangers       Strangers `json:"strangers"`                   // what becomes of private messages of strangers
	AllowInsecureDM bool      `json:"allow_insecure_dm,omitempty"` // of before Strangers: true is AllowStrangers for good
}

// Strangers says what becomes of private messages of actors the user neither follows nor has
// written to in private.
type Strangers string

// The ways to receive strangers.
const (
	RequestStrangers Strangers = "requests" // they wait in the feed of requests
	DropStrangers    Strangers = "drop"
	AllowStrangers   Strangers = "allow" // they come as others do
)

// TakesStrangers returns what holds for private messages of strangers.
func (m Messaging) TakesStrangers() Strangers {
	if m.AllowInsecureDM {
		return AllowStrangers
	}
	return m.Strangers
}

// DefaultUser returns what holds for a user without a file, and for whatever a file leaves out.
func DefaultUser() User {
	return User{
		Profile:      Profile{Fields: []Field{}, Aliases: []vocab.ID{}, Mentions: []Mention{}},
		FollowPolicy: AutoAccept,
		Quotes:       AnyoneQuotes,
		Collections:  Collections{Followers: Public, Following: Public},
		Messaging:    Messaging{Strangers: RequestStrangers},
		Permissions:  DefaultPermissions(),
		Moderation:   Moderation{MutedActors: []vocab.ID{}, MutedDomains: []string{}, MutedKeywords: []string{}},
		Languages:    []string{},
	}
}

// ClosedUser returns what holds for a user whose file cannot be used and was never seen good:
// nothing is told and nothing let in that a file could keep back. Private messages of strangers
// wait among the requests, for those dropped are lost.
func ClosedUser() User {
	c := DefaultUser()
	c.FollowPolicy, c.Quotes = ApprovalRequired, NobodyQuotes
	c.Collections = Collections{Followers: Owner, Following: Owner}
	c.Permissions = closedPermissions()
	return c
}

func decodeUser(data []byte) (User, error) {
	c := DefaultUser()
	if len(data) > 0 {
		if err := decodeStrictly(data, &c); err != nil {
			return User{}, err
		}
	}
	if err := c.validateUser(); err != nil {
		return User{}, err
	}
	return c, nil
}

// validateUser reports whether c can be used, and makes empty what is nil, so that a file shows
// where things go.
func (c *User) validateUser() error {
	p := &c.Profile
	if p.Fields == nil {
		p.Fields = []Field{}
	}
	if p.Aliases == nil {
		p.Aliases = []vocab.ID{}
	}
	if p.Mentions == nil {
		p.Mentions = []Mention{}
	}
	if c.Languages == nil {
		c.Languages = []string{}
	}
	if len(p.Fields) > MaxFields {
		return badMember("profile.fields", " has %d fields: at most %d are taken", len(p.Fields), MaxFields)
	}
	type text struct {
		key, value string
		min, max   int
	}
	texts := []text{{"profile.name", p.Name, 0, MaxName}, {"profile.summary", p.Summary, 0, MaxSummary}}
	for i, f := range p.Fields {
		key := fmt.Sprintf("profile.fields[%d]", i)
		texts = append(texts, text{key + ".name", f.Name, 1, MaxFieldName}, text{key + ".value", f.Value, 0, MaxFieldValue})
	}
	for _, t := range texts {
		if n := utf8.RuneCountInString(t.value); n < t.min || n > t.max {
			return badMember(t.key, " has %d characters: %d to %d are taken", n, t.min, t.max)
		}
		if !isPrintable(t.value) {
			return badMember(t.key, " holds a control character")
		}
	}
	for _, l := range []struct {
		key string
		id  vocab.ID
	}{{"profile.icon", p.Icon}, {"profile.image", p.Image}} {
		if _, err := vocab.ParseID(string(l.id)); l.id != "" && err != nil {
			return badMember(l.key, ": %.60q is not the address of a picture", l.id)
		}
	}
	if err := p.validateAccounts(); err != nil {
		return err
	}
	if err := p.validateMentions(); err != nil {
		return err
	}
	return c.validateChoices()
}

// validateAccounts looks at what the profile says of other accounts of the person.
func (p Profile) validateAccounts() error {
	if len(p.Aliases) > maxAliases {
		return badMember("profile.aliases", " names %d: at most %d are taken", len(p.Aliases), maxAliases)
	}
	for _, id := range append(slices.Clone(p.Aliases), p.MovedTo) {
		if _, err := vocab.ParseID(string(id)); id != "" && err != nil {
			return badMember("profile.aliases", " and profile.moved_to: %.60q is not the id of an actor", id)
		}
	}
	return nil
}

func (p *Profile) validateMentions() error {
	if len(p.Mentions) > MaxMentions {
		return badMember("profile.mentions", " has %d handles: at most %d are taken", len(p.Mentions), MaxMentions)
	}
	for n, m := range p.Mentions {
		key := fmt.Sprintf("profile.mentions[%d]", n)
		if spans := vocab.Spans(m.Handle); len(spans) != 1 || spans[0].Kind != vocab.HandleSpan || spans[0].Text != m.Handle {
			return badMember(key+".handle", ": %.60q is not a handle", m.Handle)
		}
		if _, err := vocab.ParseID(string(m.URL)); err != nil {
			return badMember(key+".url", ": %.60q is not the address of a page", m.URL)
		}
	}
	return nil
}

func (c *User) validateChoices() error {
	if err := c.Permissions.validateRules(); err != nil {
		return err
	}
	if err := c.Moderation.validateMutes(); err != nil {
		return err
	}
	if p := c.FollowPolicy; p != AutoAccept && p != ApprovalRequired {
		return badMember("follow_policy", ": %.60q is neither auto_accept nor approval_required", string(p))
	}
	if q := c.Quotes; q != AnyoneQuotes && q != FollowersQuote && q != NobodyQuotes {
		return badMember("quotes", ": %.60q is none of anyone, followers and nobody", string(q))
	}
	if s := c.Messaging.Strangers; s != RequestStrangers && s != DropStrangers && s != AllowStrangers {
		return badMember("messaging.strangers", ": %.60q is none of requests, drop and allow", string(s))
	}
	for _, v := range []struct {
		key   string
		value Visibility
	}{{"collections.followers", c.Collections.Followers}, {"collections.following", c.Collections.Following}} {
		if v.value != Public && v.value != Owner {
			return badMember(v.key, ": %.60q is neither public nor owner", string(v.value))
		}
	}
	if len(c.Languages) > 16 {
		return badMember("languages", " names %d: at most 16 are taken", len(c.Languages))
	}
	for _, tag := range c.Languages {
		if !vocab.IsLanguage(tag) {
			return badMember("languages", ": %.60q is not the tag of a language, such as de or pt-BR", tag)
		}
	}
	return nil
}

// badMember says what is wrong with the member of a key, and points to it.
func badMember(key, format string, args ...any) error {
	pointer := "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(key)
	return fault.New(fault.Config, key+fmt.Sprintf(format, args...)).At(pointer)
}

func badConfig(format string, args ...any) error {
	return fault.New(fault.Config, fmt.Sprintf(format, args...))
}

func isPrintable(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\t' {
			return false
		}
	}
	return true
}
