package vocab

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lightweb/lightweb/engine/fault"
)

// Addressing holds the recipients that an activity or object names.
type Addressing struct {
	To, Cc, Bto, Bcc, Audience []ID
}

// maxAddressed is the greatest number of recipients that one document may name.
const maxAddressed = 1000

func parseAddressing(d Doc) (Addressing, error) {
	var a Addressing
	n := 0
	for _, f := range []struct {
		name string
		into *[]ID
	}{{"to", &a.To}, {"cc", &a.Cc}, {"bto", &a.Bto}, {"bcc", &a.Bcc}, {"audience", &a.Audience}} {
		ids, err := d.IDs(f.name)
		if err != nil {
			return a, err
		}
		*f.into = ids
		n += len(d.list(f.name))
	}
	if n > maxAddressed {
		return a, fault.New(fault.Invalid, "more than 1000 are addressed")
	}
	return a, nil
}

// AddressingOf returns the recipients that a document names.
func AddressingOf(d Doc) (Addressing, error) { return parseAddressing(d) }

// All returns all recipients, each once.
func (a Addressing) All() []ID {
	var out []ID
	seen := map[ID]bool{}
	for _, id := range slices.Concat(a.To, a.Cc, a.Audience, a.Bto, a.Bcc) {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// With returns the recipients of a followed by those of b.
func (a Addressing) With(b Addressing) Addressing {
	return Addressing{To: slices.Concat(a.To, b.To), Cc: slices.Concat(a.Cc, b.Cc), Audience: slices.Concat(a.Audience, b.Audience),
		Bto: slices.Concat(a.Bto, b.Bto), Bcc: slices.Concat(a.Bcc, b.Bcc)}
}

// maxValues limits the number of values in those lists of a document that are searched whenever
// the document is used. parseAddressing limits the lists of recipients. Other lists are limited
// here only by the size of the document; CheckBounds has further limits for documents of peers.
var maxValues = []struct {
	name   string
	values int
}{{"type", 20}, {"attributedTo", 100}, {"inReplyTo", 100}, {"attachment", 100}, {"tag", maxAddressed}} // tag: every recipient may be mentioned

func checkLists(d Doc) error {
	for _, l := range maxValues {
		if len(d.list(l.name)) > l.values {
			return fault.New(fault.Invalid, fmt.Sprintf("more than %d values of %s are not taken", l.values, l.name)).At("/" + l.name)
		}
	}
	return nil
}

// Activity is a parsed activity: its actor, type, object and recipients. Only ParseActivity and
// ActivityOf make one.
type Activity struct {
	ID, Actor ID
	Written   string // the id as the sender's server writes it
	Type      string // short form, such as "Create"
	Object    Ref    // zero for an intransitive activity, and for a Flag
	Target    Ref
	Addressing
	Published time.Time       // zero when absent or malformed
	Doc       Doc             // the whole document
	Raw       json.RawMessage // the bytes as received or as built, which are stored

	stored *stored // the stored form of the object
}

// stored is the stored form of an object. It is made once for all recipients.
type stored struct {
	once          sync.Once
	doc, readable json.RawMessage
}

// Embedded returns the object that the activity embeds. All objects that it returns share one
// stored form, which is made only once.
func (a *Activity) Embedded() (*Object, error) {
	o, err := ObjectOf(a.Object.Doc)
	if err == nil && a.stored != nil {
		o.stored, o.raw, o.at = a.stored, a.Raw, []string{"object"}
	}
	return o, err
}

// ParseActivity reads an activity. It must be one JSON object with an id, a type, exactly one
// actor, at most one target and, unless it is a Flag, at most one object. Its lists must not
// exceed maxValues and maxAddressed. Handlers check everything else.
func ParseActivity(raw []byte) (*Activity, error) {
	d, err := ParseDoc(raw)
	if err != nil {
		return nil, err
	}
	return ActivityOf(d, raw)
}

// ActivityOf reads an activity out of a parsed document. The parameter raw holds the bytes of
// the document.
func ActivityOf(d Doc, raw []byte) (*Activity, error) {
	a := &Activity{Doc: d, Raw: raw, stored: &stored{}}
	err := checkLists(d)
	if err != nil {
		return nil, err
	}
	if a.Type, err = d.Type(); err != nil {
		return nil, err
	}
	if a.Type == "" {
		return nil, fault.New(fault.Invalid, "an activity needs a type").At("/type")
	}
	if a.ID, err = d.ID(); err != nil {
		return nil, err
	}
	if a.ID == "" {
		return nil, fault.New(fault.Invalid, "an activity needs an id").At("/id")
	}
	a.Written = d.writtenID()
	actor, err := d.Ref("actor")
	if err != nil {
		return nil, err
	}
	if a.Actor = actor.ID; a.Actor == "" || a.Actor == Public {
		return nil, fault.New(fault.Invalid, "an activity needs an actor").At("/actor")
	}
	if a.Type != Flag { // a Flag may have many objects, one for each thing that is reported
		if a.Object, err = d.Ref("object"); err != nil {
			return nil, err
		}
		if err := checkLists(a.Object.Doc); err != nil {
			return nil, err
		}
	}
	if a.Target, err = d.Ref("target"); err != nil {
		return nil, err
	}
	if a.Addressing, err = parseAddressing(d); err != nil {
		return nil, err
	}
	a.Published = d.Time("published")
	return a, nil
}

// Object is a parsed object, such as a Note, an Article or a Tombstone.
type Object struct {
	ID           ID
	Written      string // the id as its server writes it
	Type         string
	AttributedTo ID // one of the authors: a Person of the object's origin, else any actor of that origin, else the first
	InReplyTo    ID
	Addressing
	Published, Updated time.Time
	Doc                Doc

	stored   *stored
	raw      json.RawMessage // the bytes of the received document; nil when unknown
	at       []string        // the path of the object in raw
	approved bool            // see WithStamp
	isOwn    bool            // see WrittenHere
}

// Stored returns the object in the form in which users' databases store it. The form names other
// objects and actors by canonical ids, and types by their short names. It has no hidden recipients
// and no authors of other servers, and names its authors and stamps in forms that the database
// finds (see WithOwnAuthors and withPlainStamps). It has a stamp (see QuoteAuthorization) only if
// the stamp was verified. The result readable holds the texts that readers are shown.
func (o *Object) Stored() (doc, readable json.RawMessage) {
	o.stored.once.Do(func() {
		d, _ := o.Doc.WithCanonicalIDs()
		d, _ = d.WithPlainTypes()
		if !o.approved {
			d = d.withoutClaim()
		}
		o.stored.doc = d.withPlainStamps().WithOwnAuthors().WithoutHidden().JSON()
		readable := Readable(o.Doc, o.raw, o.at...)
		if o.isOwn {
			readable = withAuthorsText(readable, o.Doc)
		}
		o.stored.readable = readable.JSON()
	})
	return o.stored.doc, o.stored.readable
}

// WrittenHere returns a copy of an object that a user of this server wrote. Readers of the copy's
// stored form are shown the plain text that the user wrote, not one that is made from the content.
func (o *Object) WrittenHere() *Object {
	own := *o
	own.stored, own.isOwn = &stored{}, true
	return &own
}

// ForAuthor returns a copy of the object that is addressed to its author alone.
func (o *Object) ForAuthor() *Object {
	own := *o
	own.stored, own.Doc = &stored{}, maps.Clone(o.Doc)
	for _, name := range []string{"cc", "audience", "bto", "bcc"} {
		delete(own.Doc, name)
	}
	own.Doc["to"], own.Addressing = []any{string(o.AttributedTo)}, Addressing{To: []ID{o.AttributedTo}}
	return &own
}

// ObjectOf reads an object out of a parsed document. It must have an id and a type.
func ObjectOf(d Doc) (*Object, error) {
	o := &Object{Doc: d, stored: &stored{}}
	err := checkLists(d)
	if err != nil {
		return nil, err
	}
	if o.Type, err = d.Type(); err != nil {
		return nil, err
	}
	if o.ID, err = d.ID(); err != nil {
		return nil, err
	}
	if o.ID == "" || o.Type == "" {
		return nil, fault.New(fault.Invalid, "an object needs an id and a type").At("/object")
	}
	o.Written = d.writtenID()
	if o.AttributedTo, err = chooseAuthor(d, o.ID); err != nil {
		return nil, err
	}
	parents, err := d.IDs("inReplyTo")
	if err != nil {
		return nil, err
	}
	if len(parents) > 0 {
		o.InReplyTo = parents[0]
	}
	if o.Addressing, err = parseAddressing(d); err != nil {
		return nil, err
	}
	o.Published, o.Updated = d.Time("published"), d.Time("updated")
	return o, nil
}

// OwnAuthors reports whether the object has authors and all of them are actors of its own
// server. A server speaks for its own actors only (FEP-fe34).
func (o *Object) OwnAuthors() bool {
	authors, err := o.Doc.IDs("attributedTo")
	foreign := func(id ID) bool { return !id.SameOrigin(o.ID) }
	return err == nil && len(authors) > 0 && !slices.ContainsFunc(authors, foreign)
}

// Authors returns all actors that the object is attributed to.
func (o *Object) Authors() []ID {
	ids, _ := o.Doc.IDs("attributedTo") // no error: ObjectOf has read it
	return ids
}

// chooseAuthor returns one of the actors to which the object d is attributed; id is the id of d.
// It prefers a Person on the server of the object, because PeerTube also names a channel (Group).
// If there is none, it takes the first actor on that server, or else the first actor.
func chooseAuthor(d Doc, id ID) (ID, error) {
	named, err := d.IDs("attributedTo")
	if err != nil || len(named) == 0 {
		return "", err
	}
	for _, sub := range d.Subs("attributedTo") {
		r, err := toRef(sub)
		if err == nil && r.Type() == "Person" && r.ID.SameOrigin(id) {
			return r.ID, nil
		}
	}
	if i := slices.IndexFunc(named, id.SameOrigin); i >= 0 {
		return named[i], nil
	}
	return named[0], nil
}
