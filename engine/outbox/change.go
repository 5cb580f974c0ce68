package outbox

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/audience"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/handler"
	"github.com/lightweb/lightweb/engine/vocab"
)

// updateObject changes what the user wrote. The whole object goes out again (ActivityPub §6.3).
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
	mentioned []*vocab.Actor // by the new text, and not addressed before
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

// readLists reads tags and attachments, as far as they are given.
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
		x.earlier = nil // who was a follower when it was written may be none any more: new words are not for it
	}
	last := x.before.Published
	if x.before.UpdatedAt != nil {
		last = *x.before.UpdatedAt
	}
	if !x.now.After(last) { // two changes within one millisecond, or a clock that was set back
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

// readText finds the actors that a new text names. A private text goes to nobody that it did not go
// to before.
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

// constructObject keeps when the object was published, and says when it was changed: without that
// Mastodon takes an Update for a count of votes, and throws the new text away.
func (p *updateObject) constructObject(local *actor.Local, x *exchange) (string, any) {
	d := p.object.Doc
	writeAddressing(d, x.to, x.cc)
	setQuotePolicy(local, x.User, d, audience.IsPublic(vocab.Addressing{To: x.to, Cc: x.cc}))
	d["updated"] = formatTime(x.now)
	setPage(local, d, audience.IsPublic(vocab.Addressing{To: x.to, Cc: x.cc}))
	if p.Title != nil {
		setTitle(d, *p.Title)
	}
	language := languageOf(d)
	if p.Language != nil {
		language = *p.Language
	}
	if p.Content != nil {
		setContent(d, *p.Content, x.linkText(local))
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

// keepMentions returns the Mention tags that the document has.
func keepMentions(d vocab.Doc) []any {
	var out []any
	for _, tag := range d.Subs("tag") {
		if kind, err := tag.Type(); err == nil && kind == "Mention" {
			out = append(out, tag)
		}
	}
	return out
}

func (p *updateObject) findEarlier(ctx context.Context, tx *db.Tx, x *exchange) (vocab.ID, error) {
	there, err := tx.Object(ctx, x.before.URI)
	if err != nil {
		return "", err
	}
	if there == nil || there.DeletedAt != nil || !isSameTime(there.UpdatedAt, x.before.UpdatedAt) {
		return "", fault.New(fault.Conflict, "the object was changed or deleted meanwhile").WithCode("changed_meanwhile")
	}
	return "", nil
}

func isSameTime(a, b *time.Time) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Equal(*b)
}

// deleteObject deletes what the user wrote, everywhere it went (ActivityPub §6.4).
type deleteObject struct {
	about
	object *vocab.Object
}

func (p *deleteObject) findRecipients(ctx context.Context, f *finder, x *exchange) (err error) {
	if p.object, err = f.ownObject(ctx, x, &p.about); err != nil {
		return err
	}
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *db.Tx) (err error) {
		x.unnamed, err = tx.Unnamed(ctx, p.object.ID)
		return err
	})
	if err != nil {
		return err
	}
	return f.reachAll(ctx, x, p.object.Addressing)
}

func (p *deleteObject) constructObject(_ *actor.Local, x *exchange) (string, any) {
	return vocab.Delete, buildTombstone(p.object.ID, p.object.Type, x.now)
}

func buildTombstone(id vocab.ID, former string, now time.Time) vocab.Doc {
	d, err := vocab.ParseDoc(handler.Tombstone(id, former, now))
	if err != nil {
		panic("outbox: the Tombstone that was written cannot be read: " + err.Error())
	}
	return d
}

func (p *deleteObject) findEarlier(ctx context.Context, tx *db.Tx, x *exchange) (vocab.ID, error) {
	there, err := tx.Object(ctx, x.before.URI)
	if err != nil || there != nil && there.DeletedAt == nil {
		return "", err
	}
	before, err := tx.LatestActivity(ctx, vocab.Delete, x.actor.ID, x.before.URI)
	if err == nil && before == nil {
		err = fault.New(fault.Gone, "the object was deleted").At("/params/objectId")
	}
	if err != nil {
		return "", err
	}
	return before.URI, nil
}

// ownObject returns a stored object of the user's, and remembers as what and where it went before.
func (f *finder) ownObject(ctx context.Context, x *exchange, p *about) (obj *vocab.Object, err error) {
	id, err := f.findMeantID(ctx, x, "objectId", vocab.IDOf(p.ObjectID), x.actor.ID, handler.StoredTypes().Words...) // by what others did nothing is deleted
	if err != nil {
		return nil, err
	}
	p.ObjectID = string(id)
	err = f.store.Read(ctx, x.User, func(ctx context.Context, tx *db.Tx) error {
		if x.before, err = tx.Object(ctx, id); err != nil {
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
		x.earlier, err = tx.SentTo(ctx, id)
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
