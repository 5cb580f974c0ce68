package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Post is a post of an account, as it is in an archive. It has the ids that it has in the
// archive.
type Post struct {
	Activity, Object vocab.ID
	Published        time.Time
	ActivityDoc      json.RawMessage // without the object
	ObjectDoc        json.RawMessage
	Readable         json.RawMessage // the sanitized content that readers see
	Attachments      int             // the number of attached files
}

// noPosts are the types of objects that an account creates and that are no posts. A Collection is
// a group of a user of Lightweb.
var noPosts = []string{"Tombstone", "Collection", vocab.OrderedCollection}

// ReadPost reads an item of the outbox of the account. It returns nil if the item is not a post
// of the account, such as an Announce or a Like of another actor's post, or a group. The fault is
// Invalid for a Create of a post by another author.
func ReadPost(item json.RawMessage, account vocab.ID) (*Post, error) {
	if len(item) > 0 && item[0] != '{' {
		return nil, nil
	}
	d, err := vocab.ParseDoc(item)
	if err != nil {
		return nil, damagedFault(err)
	}
	object := d.Sub("object")
	if kind, err := d.Type(); err != nil || kind != vocab.Create || object == nil || slices.Contains(noPosts, object.Text("type")) {
		return nil, nil
	}
	o, err := vocab.ObjectOf(object)
	if err != nil {
		return nil, damagedFault(err)
	}
	id, err := d.ID()
	if err != nil || id == "" {
		return nil, damagedFault(errors.New("a Create in it has no id"))
	}
	if !o.ID.SameOrigin(account) || !o.AttributedTo.Same(account) {
		return nil, damagedFault(fmt.Errorf("the post %.200q in it is not by %s", o.ID, account))
	}
	p := &Post{Activity: id, Object: o.ID, Published: o.Published, Attachments: len(object.Subs("attachment"))}
	if p.Published.IsZero() {
		p.Published = d.Time("published")
	}
	p.ObjectDoc, p.Readable = o.Stored()
	delete(d, "object")
	d, _ = d.WithCanonicalIDs()
	p.ActivityDoc = d.WithoutHidden().JSON()
	return p, nil
}
