package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/lightweb/lightweb/engine/vocab"
)

// constructActivity builds the activity in its stored form and in the form that is sent. The
// sent form has the ids of other servers as those servers write them. Both have the user's
// proof. Neither has bto or bcc, because no document names the recipients that are addressed
// through a group.
func (o *Outbox) constructActivity(ctx context.Context, x *exchange) error {
	kind, object := x.intent.constructObject(o.Local, x)
	d := vocab.Doc{"id": string(o.Local.NewActivityID(x.User)), "type": kind, "actor": string(x.actor.ID),
		"object": object, "published": vocab.FormatTime(x.now)}
	writeAddressing(d, x.to, x.cc)
	setAudience(d, x.communities)
	if x.target != "" {
		d["target"] = string(x.target)
	}
	d["@context"] = vocab.WithQuoteTerms(vocab.ActivityContext(), d)
	raw, body, err := o.proveActivity(d, x)
	if err != nil {
		return fmt.Errorf("prove %s: %w", kind, err)
	}
	if x.activity, err = vocab.ParseActivity(raw); err != nil {
		return fmt.Errorf("construct %s: %w", kind, err)
	}
	x.body = body
	return o.constructPlacing(ctx, x)
}

// proveActivity adds the user's proof to an activity, and returns its stored form (raw) and the
// form that is sent (body).
func (o *Outbox) proveActivity(d vocab.Doc, x *exchange) (raw, body json.RawMessage, err error) {
	raw, err = o.Local.Prove(x.User, d, o.Now()) // not x.now, which may be ahead of the clock
	s := x.collectSpellings()
	if err != nil || len(s) == 0 && x.embedded == nil {
		return raw, raw, err
	}
	if x.embedded != nil {
		d = embedObject(d, x.embedded)
	}
	body, err = o.Local.Prove(x.User, d.Spelled(s), o.Now())
	return raw, body, err
}

// embedObject returns an activity with the whole object in place of its id. The context of the
// activity then has the terms of the object, too.
func embedObject(d, object vocab.Doc) vocab.Doc {
	d, object = maps.Clone(d), maps.Clone(object)
	terms, _ := object["@context"].([]any)
	context := slices.Clone(vocab.ActivityContext())
	delete(object, "@context")
	for _, t := range terms {
		if t != any(vocab.ContextAS) { // the activity has it already
			context = append(context, t)
		}
	}
	d["@context"], d["object"] = context, object
	return d
}

// collectSpellings returns the ids that the activity may name, as their own servers write them.
func (x *exchange) collectSpellings() vocab.Spelling {
	s := x.spelling
	if x.counterpart != nil {
		s = s.Add(x.counterpart.ID, x.counterpart.Written)
	}
	for _, a := range x.named {
		s = s.Add(a.ID, a.Written)
	}
	return s
}

// writeAddressing adds the addressing, that is, the members to and cc, to a document.
func writeAddressing(d vocab.Doc, to, cc []vocab.ID) {
	for name, ids := range map[string][]vocab.ID{"to": to, "cc": cc} {
		if len(ids) > 0 {
			d[name] = listIDs(ids)
		}
	}
}

func listIDs(ids []vocab.ID) []any {
	out := make([]any, len(ids))
	for i, id := range ids {
		out[i] = string(id)
	}
	return out
}

// embedActivity returns a stored activity of the user's in the form in which another activity
// embeds it: without hidden recipients, context and proof.
func embedActivity(d vocab.Doc) vocab.Doc {
	d = d.WithoutHidden()
	delete(d, "@context")
	delete(d, "proof")
	return d
}
