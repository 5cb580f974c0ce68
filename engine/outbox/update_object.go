package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// updateObject changes an object of the user's. The Update has the whole object (ActivityPub
// §6.3).
type updateObject struct {
	about
	Title     *string   `json:"title" schema:"title,optional"`
	Content   *string   `json:"content" schema:"content,optional"`
	Summary   *string   `json:"summary" schema:"summary,optional"`
	Sensitive *bool     `json:"sensitive" schema:"sensitive,optional"`
	Tags      *[]string `json:"tags" schema:"tags,optional"`
	Language  *string   `json:"language" schema:"language,optional"`

	Attachments *[]json.RawMessage `json:"attachments" schema:"attachments,optional"`

	attached  []attachment
	object    *vocab.Object
	mentioned []*vocab.Actor // actors that the new text names and that were not addressed before
}

func (p *updateObject) checkParams() error {
	if err := p.about.checkParams(); err != nil {
		return err
	}
	if p.Title == nil && p.Content == nil && p.Summary == nil && p.Sensitive == nil && p.Tags == nil && p.Language == nil && p.Attachments == nil {
		return fault.New(fault.Unprocessable, "there is nothing to change").WithCode("invalid_parameter").At("/params")
	}
	if err := p.checkWords(); err != nil {
		return err
	}
	return p.readLists()
}

func (p *updateObject) checkWords() error {
	for _, word := range []struct {
		given *string
		check func(string) error
	}{{p.Title, checkTitle}, {p.Content, checkContent}, {p.Language, checkLanguage}} {
		if word.given == nil {
			continue
		}
		if err := word.check(*word.given); err != nil {
			return err
		}
	}
	return nil
}

// readLists reads tags and attachments, if they are given.
func (p *updateObject) readLists() (err error) {
	if p.Tags != nil {
		if *p.Tags, err = checkTags(*p.Tags); err != nil {
			return err
		}
	}
	if p.Attachments != nil {
		p.attached, err = readAttachments(*p.Attachments)
	}
	return err
}

func (p *updateObject) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if p.object, err = f.ownObject(ctx, x, &p.about); err != nil {
		return err
	}
	if x.before.DeletedAt != nil {
		return fault.New(fault.Gone, "the object was deleted").At("/params/objectId")
	}
	if p.Title != nil && p.object.Type == "Note" {
		return badParam("title", "a note has no title")
	}
	if !audience.IsPublic(p.object.Addressing) {
		x.earlier = nil // former followers must not get the new text
	}
	last := x.before.Published
	if x.before.UpdatedAt != nil {
		last = *x.before.UpdatedAt
	}
	if !x.now.After(last) { // two changes were made within one millisecond, or the clock was set back
		x.now = last.Truncate(time.Millisecond).Add(time.Millisecond)
	}
	if err := f.reachAll(ctx, x, p.object.Addressing); err != nil {
		return err
	}
	if err := p.readText(ctx, f, x); err != nil {
		return err
	}
	return f.addressMembers(ctx, x, p.object.ID)
}

// readText finds the actors that a new text names, and addresses them. A private text is not
// sent to further actors.
func (p *updateObject) readText(ctx context.Context, f *finder, x *exchange) error {
	if p.Content == nil {
		return nil
	}
	post := audience.OfObject(p.object, x.actor.Followers)
	if post.IsPrivate() {
		x.linkNamed(*p.Content)
		return nil
	}
	before := len(x.named)
	if err := f.findMentions(ctx, x, *p.Content); err != nil {
		return err
	}
	if post.IsLocal() {
		f.keepLocal(x)
	}
	p.mentioned = x.named[before:]
	for _, a := range p.mentioned {
		x.cc = append(slices.Clip(x.cc), a.ID)
	}
	return nil
}

// constructObject applies the changes to the object. It keeps the time of publication, and adds
// the time of the change. Without the time of the change, Mastodon would take the Update for new
// vote counts of a poll and ignore the new text.
func (p *updateObject) constructObject(local *actor.Local, x *exchange) (string, any) {
	d := p.object.Doc
	writeAddressing(d, x.to, x.cc)
	setQuotePolicy(local, x.User, d, audience.IsPublic(vocab.Addressing{To: x.to, Cc: x.cc}))
	d["updated"] = vocab.FormatTime(x.now)
	setPage(local, d, audience.IsPublic(vocab.Addressing{To: x.to, Cc: x.cc}))
	if p.Title != nil {
		setTitle(d, *p.Title)
	}
	language := languageOf(d)
	if p.Language != nil {
		language = *p.Language
	}
	if p.Content != nil {
		setContent(d, *p.Content, x.linkText(local.Addresses))
	}
	setLanguage(d, language)
	if p.Attachments != nil {
		setAttachments(d, p.attached)
	}
	if p.Summary != nil {
		setSummary(d, *p.Summary)
	}
	if p.Sensitive != nil {
		setSensitive(d, *p.Sensitive)
	}
	if p.Content != nil || p.Tags != nil {
		tags := listTags(d)
		if p.Tags != nil {
			tags = *p.Tags
		}
		setTags(d, tags, append(keepMentions(d), listMentions(p.mentioned)...), func(tag string) string { return local.TagPage(x.User, tag) })
	}
	return vocab.Update, d
}

// listTags returns the free tags of the document.
func listTags(d vocab.Doc) (tags []string) {
	free, _ := d["lwTags"].([]any)
	for _, t := range free {
		if tag, is := t.(string); is {
			tags = append(tags, tag)
		}
	}
	return tags
}

// keepMentions returns the Mention tags of the document.
func keepMentions(d vocab.Doc) []any {
	var out []any
	for _, tag := range d.Subs("tag") {
		if kind, err := tag.Type(); err == nil && kind == "Mention" {
			out = append(out, tag)
		}
	}
	return out
}

func (p *updateObject) findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error) {
	there, err := tx.Objects.Find(ctx, x.before.URI)
	if err != nil {
		return "", err
	}
	if there == nil || there.DeletedAt != nil || !bytes.Equal(there.Raw, x.before.Raw) {
		return "", fault.New(fault.Conflict, "the object was changed or deleted meanwhile").WithCode("changed_meanwhile")
	}
	return "", nil
}

// ownObject returns a stored object of the user's. It also sets x.before to the stored row and
// x.earlier to the inboxes that the object was sent to.
func (f *finder) ownObject(ctx context.Context, x *exchange, p *about) (obj *vocab.Object, err error) {
	id, err := f.findMeantID(ctx, x, "objectId", vocab.IDOf(p.ObjectID), x.actor.ID, handler.StoredTypes().Words...) // only the user's own activities may stand for the object
	if err != nil {
		return nil, err
	}
	p.ObjectID = string(id)
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *user.Tx) error {
		if x.before, err = tx.Objects.Find(ctx, id); err != nil {
			return err
		}
		if x.before == nil {
			return fault.New(fault.NotFound, "there is no such object").At("/params/objectId")
		}
		if obj, err = x.before.Parse(); err != nil {
			return err
		}
		if err := x.noteSpelling(ctx, tx, obj.InReplyTo); err != nil {
			return err
		}
		x.earlier, err = tx.Deliveries.ListSentTo(ctx, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	whose, _, local := f.local.Holder(obj.ID)
	if !local || whose != x.User || obj.Type != "Tombstone" && !obj.AttributedTo.Same(x.actor.ID) {
		return nil, fault.New(fault.Forbidden, "the object is somebody else's").WithCode("not_own_object").At("/params/objectId")
	}
	return obj, x.checkTaken(obj, "objectId")
}
