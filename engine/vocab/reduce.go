package vocab

import (
	"encoding/json"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
)

// Bounds of the reduced form of an actor's document, in bytes.
const (
	maxReduced    = 16 << 10
	maxActorWords = 4 << 10 // of a name, a summary, or a key
	maxDate       = 64
)

// The greatest numbers of values that lists in the reduced form have.
const (
	maxAliases    = 32
	maxImplements = 16
)

// dispensable are the members that the engine can do without. They are left out of a document
// that is too large, in this order, until it is small enough.
var dispensable = []string{"summary", "url", "published", "discoverable", "icon", "generator", "alsoKnownAs", "name"}

// Reduced returns the actor in the form in which actors of other servers are stored: with only
// the members of its document that the engine reads, in at most 16 KiB. It refuses an actor
// whose document is larger even without dispensable members. Reducing an actor again changes
// nothing.
func (a *Actor) Reduced() (*Actor, error) {
	if a.reduced {
		return a, nil
	}
	d, err := ParseDoc(a.Raw)
	if err != nil {
		return nil, err
	}
	raw, err := a.writeReduced(d)
	if err != nil {
		return nil, err
	}
	r, err := ParseActor(raw)
	if err != nil {
		return nil, err
	}
	r.reduced = true
	return r, nil
}

// writeReduced returns a new document with those members of d that the engine reads.
func (a *Actor) writeReduced(d Doc) (json.RawMessage, error) {
	out := Doc{"id": a.Written, "type": a.Type, "inbox": string(a.Inbox), "publicKey": a.keysListed(false), "assertionMethod": a.keysListed(true)}
	out.setText("preferredUsername", a.PreferredUsername)
	out.setText("name", cutWords(d.Words("name")))
	out.setText("summary", cutWords(d.Words("summary")))
	for name, id := range map[string]ID{"outbox": a.Outbox, "followers": a.Followers, "following": a.Following, "featured": a.Featured, "movedTo": a.MovedTo} {
		out.setText(name, string(id))
	}
	endpoints := Doc{}
	endpoints.setText("sharedInbox", string(a.SharedInbox))
	endpoints.setText("realtime", string(a.Realtime))
	if len(endpoints) > 0 {
		out["endpoints"] = endpoints
	}
	if len(a.AlsoKnownAs) > 0 {
		out["alsoKnownAs"] = listOf(a.AlsoKnownAs[:min(len(a.AlsoKnownAs), maxAliases)])
	}
	if len(a.Implements) > 0 {
		out["generator"] = Doc{"type": "Application", "implements": listOf(a.Implements[:min(len(a.Implements), maxImplements)])}
	}
	if a.DeliversMLS > 0 {
		out[mlsDelivery] = Doc{"deliveryVersion": a.DeliversMLS}
	}
	for _, name := range []string{"manuallyApprovesFollowers", "discoverable"} {
		if d.Flag(name) {
			out[name] = true
		}
	}
	if picture := pictureOf(d); picture != "" {
		out["icon"] = Doc{"type": "Image", "url": string(picture)}
	}
	if page, err := ParseID(d.Text("url")); err == nil {
		out["url"] = string(page)
	}
	if date := d.Text("published"); len(date) <= maxDate {
		out.setText("published", date)
	}
	raw := out.JSON()
	for _, name := range dispensable {
		if len(raw) <= maxReduced {
			break
		}
		delete(out, name)
		raw = out.JSON()
	}
	if len(raw) > maxReduced {
		return nil, fault.New(fault.Invalid, "an actor with its keys must fit into 16 KiB")
	}
	return raw, nil
}

// keysListed returns the actor's keys in the form that ActorOf reads. If asserts is true, these
// are the keys in assertionMethod, otherwise those in publicKey. It leaves out keys that are
// too long to be valid.
func (a *Actor) keysListed(asserts bool) []any {
	list := []any{}
	for _, k := range a.Keys {
		if k.Asserts != asserts || len(k.PEM) > maxActorWords || len(k.Multibase) > maxActorWords {
			continue
		}
		d := Doc{"id": string(k.ID)}
		d.setText("controller", string(k.Owner))
		d.setText("publicKeyPem", k.PEM)
		d.setText("publicKeyMultibase", k.Multibase)
		list = append(list, d)
	}
	return list
}

// setText sets a property to a text, unless the text is empty.
func (d Doc) setText(name, text string) {
	if text != "" {
		d[name] = text
	}
}

// cutWords returns the first maxActorWords bytes of a text, cut between characters.
func cutWords(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxActorWords)], "")
}

func listOf[T ~string](all []T) []any {
	list := make([]any, len(all))
	for i, s := range all {
		list[i] = string(s)
	}
	return list
}
