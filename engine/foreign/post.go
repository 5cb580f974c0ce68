package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/lightweb/lightweb/engine/vocab"
)

// Post is a post of an account as it is archived: under the ids that it has there.
type Post struct {
	Activity, Object vocab.ID
	Published        time.Time
	ActivityDoc      json.RawMessage // without the object
	ObjectDoc        json.RawMessage
	Readable         json.RawMessage // what readers are shown of its words: sanitized
	Attachments      int             // pictures and other files that it names
}

// ReadPost reads an item of the outbox of the account, nil when it is no post: what the account
// announced or liked is somebody else's. The fault is Invalid for a post that is not its own.
func ReadPost(item json.RawMessage, account vocab.ID) (*Post, error) {
	if len(item) > 0 && item[0] != '{' {
		return nil, nil
	}
	d, err := vocab.ParseDoc(item)
	if err != nil {
		return nil, damagedFault(err)
	}
	object := d.Sub("object")
	if kind, err := d.Type(); err != nil || kind != vocab.Create || object == nil || object["type"] == "Tombstone" {
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
