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

// maxUserFile is the size of the largest configuration file of a user that is read, in bytes.
const maxUserFile = 1 << 20

// Limits of a profile. MaxName, MaxSummary, MaxFieldName and MaxFieldValue are numbers of
// characters. The others are numbers of entries.
const (
	MaxName       = 100
	MaxSummary    = 5000
	MaxFields     = 16
	MaxFieldName  = 255
	MaxFieldValue = 2047
	maxAliases    = 16
	MaxMentions   = 20
)

// User is the configuration of a user.
type User struct {
	Profile      Profile      `json:"profile"`
	FollowPolicy FollowPolicy `json:"follow_policy"`
	Quotes       Quotes       `json:"quotes"`
	Collections  Collections  `json:"collections"`
	Messaging    Messaging    `json:"messaging"`
	Permissions  Permissions  `json:"permissions"`
	Moderation   Moderation   `json:"moderation"`
	Discoverable bool         `json:"discoverable"` // may be suggested to others; false unless set, as it needs consent
	Indexable    bool         `json:"indexable"`    // public posts may be searched (FEP-5feb); false unless set
	Languages    []string     `json:"languages"`    // at most 16, such as "pt-BR", the preferred one first
}

// Profile is the part of the actor document that describes the person, as plain text.
type Profile struct {
	Name    string   `json:"name"`    // at most 100 characters
	Summary string   `json:"summary"` // at most 5000 characters
	Icon    vocab.ID `json:"icon"`    // the URL of a picture, or empty
	Image   vocab.ID `json:"image"`   // the URL of a wide picture, or empty
	Fields  []Field  `json:"fields"`  // at most 16

	MovedTo  vocab.ID   `json:"moved_to"` // the new account of a person who has moved, or empty; followers are told
	Aliases  []vocab.ID `json:"aliases"`  // at most 16 other accounts of the person, which may move to this one
	Mentions []Mention  `json:"mentions"` // at most 20
}

// Field is a line of a profile, such as a home page.
type Field struct {
	Name  string `json:"name"`  // 1 to 255 characters
	Value string `json:"value"` // at most 2047 characters
}

// Mention is a handle in the summary with the page to which it links. The engine looks up the
// page and stores it, so that it can build the actor document without network requests.
type Mention struct {
	Handle string   `json:"handle"` // such as @bob@remote.example, in lower case
	URL    vocab.ID `json:"url"`    // the actor's page
}

// PageOf returns the page to which a handle in the summary links, or "" if it is unknown.
func (p *Profile) PageOf(handle string) string {
	for _, m := range p.Mentions {
		if m.Handle == strings.ToLower(handle) {
			return string(m.URL)
		}
	}
	return ""
}

// FollowPolicy says how a Follow is answered.
type FollowPolicy string

// The follow policies.
const (
	AutoAccept       FollowPolicy = "auto_accept"
	ApprovalRequired FollowPolicy = "approval_required"
)

// Quotes says who may quote the user's posts (FEP-044f).
type Quotes string

// The values of Quotes.
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

// Messaging says how private messages are received.
type Messaging struct {
	// Strangers says how private messages of strangers are received.
	Strangers       Strangers `json:"strangers"`
	AllowInsecureDM bool      `json:"allow_insecure_dm,omitempty"` // outdated; true means AllowStrangers
}

// Strangers says how private messages of strangers are received. A stranger is an actor that does
// not meet the rule Permissions.InsecureDM, to which the user has not written in private, and of
// which the user has accepted no message request. An answer to a private message that the user
// sent through a group is received in any case.
type Strangers string

// The values of Strangers.
const (
	RequestStrangers Strangers = "requests" // they wait in the feed of requests
	DropStrangers    Strangers = "drop"
	AllowStrangers   Strangers = "allow" // they are received like others
)

// TakesStrangers returns how private messages of strangers are received.
func (m Messaging) TakesStrangers() Strangers {
	if m.AllowInsecureDM {
		return AllowStrangers
	}
	return m.Strangers
}

// DefaultUser returns the configuration of a user without a file. A member that a file leaves
// out has the value that it has here.
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

// ClosedUser returns the configuration of a user whose file is not valid and has not been valid
// since the start. It shows and permits nothing that a file could forbid. Private messages are the
// exception, because dropped messages would be lost. The messages that the default rules permit
// are received, and the messages of strangers wait among the requests.
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

// validateUser returns an error if c is not valid. It replaces nil lists by empty ones, so that
// they are visible in the file.
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

// validateAccounts checks the ids of the person's other accounts, p.Aliases and p.MovedTo.
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

// badMember returns an error about the member that has this key, with a JSON pointer to the
// member.
func badMember(key, format string, args ...any) error {
	pointer := "/" + strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(key)
	return fault.New(fault.Config, key+fmt.Sprintf(format, args...)).At(pointer)
}

func badConfig(format string, args ...any) error {
	return fault.New(fault.Config, fmt.Sprintf(format, args...))
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !IsPrintable(r) })
}

// IsPrintable reports whether the texts of a profile may have the character.
func IsPrintable(r rune) bool {
	return r != utf8.RuneError && (!unicode.IsControl(r) || r == '\n' || r == '\t')
}
