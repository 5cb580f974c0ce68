package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of a note.
const (
	maxContent  = 64 << 10 // bytes
	maxSummary  = 1000     // characters
	maxTags     = 32
	maxHashtags = 64  // tags and hashtags in the text together
	maxTag      = 64  // characters
	maxNamed    = 100 // actors
)

// createNote writes a note (ActivityPub §6.2).
type createNote struct{ post }

func (p *createNote) findRecipients(ctx context.Context, f *finder, x *exchange) error {
	return p.post.findRecipients(ctx, f, x, note{kind: "Note"})
}

// post has the common parameters of actions that write something for people to read.
type post struct {
	Content    string   `json:"content" schema:"content"`
	Tags       []string `json:"tags" schema:"tags,optional"`
	To         []string `json:"to" schema:"recipients,optional"`
	Cc         []string `json:"cc" schema:"recipients,optional"`
	Visibility string   `json:"visibility" schema:"visibility,optional"`
	Summary    string   `json:"summary" schema:"summary,optional"`
	Sensitive  bool     `json:"sensitive" schema:"sensitive,optional"`
	InReplyTo  string   `json:"inReplyTo" schema:"id,optional"`
	Quote      string   `json:"quote" schema:"id,optional"`
	Language   string   `json:"language" schema:"language,optional"`

	StreamTarget string `json:"streamTarget" schema:"stream,optional"`

	Attachments []json.RawMessage `json:"attachments" schema:"attachments,optional"`

	note     note
	attached []attachment
}

func (p *post) checkParams() error {
	if err := checkVisibility(p.Visibility); err != nil {
		return err
	}
	if len(p.To)+len(p.Cc) > maxNamed {
		return badParam("to", "to and cc name at most 100 actors")
	}
	if err := checkLanguage(p.Language); err != nil {
		return err
	}
	if err := p.checkTarget(); err != nil {
		return err
	}
	var err error
	if p.Tags, err = checkTags(p.Tags); err != nil {
		return err
	}
	if p.attached, err = readAttachments(p.Attachments); err != nil {
		return err
	}
	return checkContent(p.Content)
}

// findRecipients finds the recipients of the post, and completes n from its parameters.
func (p *post) findRecipients(ctx context.Context, f *finder, x *exchange, n note) error {
	n.content, n.tags, n.summary, n.sensitive, n.visibility, n.language, n.attached = p.Content, p.Tags, p.Summary, p.Sensitive, p.Visibility, p.Language, p.attached
	p.note = n
	said := "" // the visibility that the addressed collections and groups stand for
	var groups []vocab.ID
	for _, field := range []struct {
		name   string
		values []string
	}{{"to", p.To}, {"cc", p.Cc}} {
		for n, v := range field.values {
			id := vocab.AddressOf(v)
			if c := visibilityOf(field.name, id, x.actor); c != "" {
				said = widerVisibility(said, c)
				continue
			}
			if strings.HasPrefix(string(id), string(f.local.Groups(x.User))+"/") {
				groups, said = append(groups, id), widerVisibility(said, audience.Direct)
				continue
			}
			a, err := f.findActor(ctx, x, fmt.Sprintf("%s/%d", field.name, n), v)
			if err != nil {
				return err
			}
			x.addNamed(a)
		}
	}
	if said != "" && p.Visibility != "" && said != p.Visibility {
		return badParam("visibility", "visibility is not what to and cc say")
	}
	p.note.visibility = widerVisibility(said, p.Visibility)
	if p.note.visibility == "" && p.hasRecipients() {
		p.note.visibility = audience.Direct // as in ActivityPub, only for the actors that to and cc name
	}
	if p.note.visibility == audience.Local && slices.ContainsFunc(x.named, f.isElsewhere) {
		return badParam("to", "to and cc name an actor of another server, and a local post is for nobody there").WithCode("not_local")
	}
	p.note.exact = p.note.visibility == audience.Direct && len(p.To)+len(p.Cc) > len(groups)
	if err := p.makeReply(ctx, f, x); err != nil {
		return err
	}
	if err := f.addressGroups(ctx, x, groups); err != nil {
		return err
	}
	if err := p.note.findQuoted(ctx, f, x, p.Quote); err != nil {
		return err
	}
	if err := p.note.readText(ctx, f, x, p.hasRecipients()); err != nil {
		return err
	}
	if err := p.note.setAddressing(f, x); err != nil {
		return err
	}
	if err := p.note.addressCommunities(ctx, f, x); err != nil {
		return err
	}
	return p.findTarget(ctx, f, x)
}

// hasRecipients reports whether to or cc names any recipient.
func (p *post) hasRecipients() bool { return len(p.To)+len(p.Cc) > 0 }

// makeReply makes the note a reply, if the action has the parameter inReplyTo.
func (p *post) makeReply(ctx context.Context, f *finder, x *exchange) error {
	if p.InReplyTo == "" {
		return nil
	}
	if err := p.note.makeReply(ctx, f, x, "inReplyTo", p.InReplyTo); err != nil || p.hasRecipients() {
		return err
	}
	return p.note.continueThread(ctx, f, x)
}

// visibilityOf returns the visibility that a collection stands for in a field, which is to or
// cc. The visibility is empty if id is not one of the collections that can be addressed.
func visibilityOf(field string, id vocab.ID, author *vocab.Actor) string {
	switch {
	case id == vocab.Public && field == "to":
		return audience.Public
	case id == vocab.Public:
		return audience.Unlisted
	case id == author.Followers:
		return audience.Followers
	case id == audience.Here(author.ID):
		return audience.Local
	}
	return ""
}

// widerVisibility returns the wider one of two visibilities. The empty one is the narrowest.
func widerVisibility(a, b string) string {
	for _, v := range audience.Visibilities {
		if v == a || v == b {
			return v
		}
	}
	return ""
}

func (p *post) constructObject(local *actor.Local, x *exchange) (string, any) {
	return p.note.constructObject(local, x)
}

// lockName returns a lock only for a post that is put into a stream, because other posts do not
// depend on each other.
func (p *post) lockName() string {
	if p.StreamTarget == "" {
		return ""
	}
	return streams
}

func (*post) findEarlier(context.Context, *user.Tx, *exchange) (vocab.ID, error) { return "", nil }

// note is the content of the object that the action writes.
type note struct {
	kind                         string // the type of the object
	title                        string // empty for none
	file                         *mediaFile
	content, summary, visibility string
	sensitive                    bool
	exact                        bool // the parameters name all actors that get the note, so the author of its parent gets it only if named
	tags                         []string
	language                     string
	attached                     []attachment
	parent                       *vocab.Object
	communities                  []vocab.ID // the ids that the parent names in audience, if it is public
	mentioned                    []*vocab.Actor
	quoted                       vocab.ID // empty if the note quotes nothing
}

// makeReply makes n a reply to the object that the parameter names. If n has no visibility of its
// own, n gets the visibility of the parent. But if the parent is local to another server, n
// becomes direct, because a local note of this server would reach everybody here and not the
// author of the parent.
func (n *note) makeReply(ctx context.Context, f *finder, x *exchange, name, value string) error {
	parent, author, err := f.findObject(ctx, x, name, value)
	if err != nil {
		return err
	}
	to := audience.OfObject(parent, author.Followers)
	n.parent, n.communities = parent, to.Communities()
	if !n.exact {
		x.addNamed(author)
	}
	if n.visibility != "" {
		return nil
	}
	n.visibility = to.Visibility()
	if n.visibility == audience.Local && f.isElsewhere(author) {
		n.visibility = audience.Direct
	}
	return nil
}

// continueThread adds recipients to a reply, if the parent is a post of the user. If both posts
// are private, it adds the actors that the parent names. It also adds the actors that got the
// parent through a group, if they are still members of that group.
func (n *note) continueThread(ctx context.Context, f *finder, x *exchange) error {
	if !n.parent.AttributedTo.Same(x.actor.ID) {
		return nil
	}
	if n.visibility == audience.Direct && audience.OfObject(n.parent, x.actor.Followers).IsPrivate() {
		if err := f.nameEarlierRecipients(ctx, x, n.parent.All()); err != nil {
			return err
		}
	}
	return f.addressMembers(ctx, x, n.parent.ID)
}

// nameEarlierRecipients addresses by name the actors among ids, except those that the user blocks
// now.
func (f *finder) nameEarlierRecipients(ctx context.Context, x *exchange, ids []vocab.ID) error {
	var blocked map[vocab.ID]bool
	err := f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) (err error) {
		blocked, err = tx.Blocks.FindAmong(ctx, ids)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !isOther(id, x.actor) || blocked[id] {
			continue
		}
		a, err := f.reachActor(ctx, x, id)
		if err != nil {
			return err
		}
		x.addNamed(a)
	}
	return nil
}

// readText finds the actors that the text names, and addresses them. A direct note goes to no
// further actors if its parameters name recipients.
func (n *note) readText(ctx context.Context, f *finder, x *exchange, hasRecipients bool) error {
	if n.visibility == audience.Direct && hasRecipients {
		x.linkNamed(n.content)
		return nil
	}
	return f.findMentions(ctx, x, n.content)
}

// setAddressing sets x.to and x.cc according to the visibility and the named actors. A local
// post goes to no actor of another server, not even to the author of its parent.
func (n *note) setAddressing(f *finder, x *exchange) error {
	if n.visibility == audience.Local {
		f.keepLocal(x)
	}
	ids := make([]vocab.ID, len(x.named))
	for i, a := range x.named {
		ids[i] = a.ID
	}
	followers := f.local.Followers(x.User)
	switch n.visibility {
	case "", audience.Public:
		x.to, x.cc = []vocab.ID{vocab.Public}, append([]vocab.ID{followers}, ids...)
	case audience.Unlisted:
		x.to, x.cc = []vocab.ID{followers}, append([]vocab.ID{vocab.Public}, ids...)
	case audience.Local:
		x.to, x.cc = []vocab.ID{audience.Here(x.actor.ID)}, ids
	case audience.Followers:
		x.to, x.cc = []vocab.ID{followers}, ids
	default:
		x.to = ids
		if len(ids) == 0 && len(x.unnamed) > 0 {
			x.to = []vocab.ID{x.actor.ID} // some servers refuse an activity without recipients
		}
		if len(x.to) == 0 {
			return badParam("to", "a direct note names somebody else")
		}
	}
	n.mentioned = x.named
	x.chooseAsked()
	return nil
}

// addressCommunities addresses the communities of the note's parent, if everybody may see the
// note. It runs after setAddressing, which stores the actors that the note mentions. So the
// communities are addressed but not mentioned.
func (n *note) addressCommunities(ctx context.Context, f *finder, x *exchange) error {
	if !audience.IsPublic(vocab.Addressing{To: x.to, Cc: x.cc}) {
		return nil
	}
	return f.addressCommunities(ctx, x, n.communities)
}

func (n *note) constructObject(local *actor.Local, x *exchange) (string, any) {
	isPublic := audience.IsPublic(vocab.Addressing{To: x.to, Cc: x.cc})
	d := vocab.Doc{"id": string(local.NewObjectID(x.User)), "type": n.kind, "attributedTo": string(x.actor.ID), "published": vocab.FormatTime(x.now)}
	writeAddressing(d, x.to, x.cc)
	setAudience(d, x.communities)
	setTitle(d, n.title)
	setQuote(d, n.quoted)
	setContent(d, n.content, x.linkText(local.Addresses))
	setLanguage(d, n.language)
	setFile(d, n.file)
	setPage(local, d, isPublic)
	setAttachments(d, n.attached)
	setSummary(d, n.summary)
	setSensitive(d, n.sensitive)
	setThread(local.Addresses, d, n.parent, isPublic)
	setQuotePolicy(local, x.User, d, isPublic)
	setTags(d, n.tags, listMentions(n.mentioned), func(tag string) string { return local.TagPage(x.User, tag) })
	return vocab.Create, d
}
