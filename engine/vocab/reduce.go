package vocab

import (
	"encoding/json"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
)

// Bounds of what is kept of an actor's document, in bytes.
const (
	maxReduced    = 16 << 10
	maxActorWords = 4 << 10 // of a name, a summary, or a key
	maxDate       = 64
)

// Bounds of what an actor may list.
const (
	maxAliases    = 32
	maxImplements = 16
)

// dispensable are the members that an actor can do without, in the order in which they are left
// out of a document that is too large.
var dispensable = []string{"summary", "url", "published", "discoverable", "icon", "generator", "alsoKnownAs", "name"}

// Reduced returns the actor with the members of its document that the engine reads, in at most 16
// KiB: the stored form of an actor of another server. An actor whose document is larger even
// without dispensable members is refused. Reducing it again changes nothing.
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

// writeReduced writes the document anew, with the members that were read of it.
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

// keysListed returns the keys that stand in assertionMethod, or those in publicKey, as ActorOf
// reads them. One that is too long for a key verifies nothing.
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

// setText sets a property to a text that is not empty.
func (d Doc) setText(name, text string) {
	if text != "" {
		d[name] = text
	}
}

// cutWords returns the beginning of an actor's description, cut between characters.
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
