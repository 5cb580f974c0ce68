package actor

import (
	"crypto/sha256"
	"fmt"
	"html"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/registry"
	"github.com/lightweb/lightweb/engine/vocab"
)

// described is an actor document as it is served, with the configuration and the keys that it
// was made from.
type described struct {
	user  registry.User
	keys  *keyset
	doc   vocab.Doc
	actor *vocab.Actor // its Raw has the bytes of doc
}

// Document returns the actor document of u. The document is shared, so it must not be changed.
func (l *Local) Document(u vocab.Username) (vocab.Doc, error) {
	d, err := l.describeUser(u)
	if err != nil {
		return nil, err
	}
	return d.doc, nil
}

// Actor returns the actor of u, whose Raw is the document. The actor is shared, so it must not
// be changed.
func (l *Local) Actor(u vocab.Username) (*vocab.Actor, error) {
	d, err := l.describeUser(u)
	if err != nil {
		return nil, err
	}
	return d.actor, nil
}

// KeyDocument returns the short actor document that is served for u while u's deletion is
// announced to other servers. It holds the keys that verify u's Delete. It also has an inbox,
// because servers refuse an actor without an inbox.
func (l *Local) KeyDocument(u vocab.Username) (vocab.Doc, error) {
	d, err := l.describeUser(u)
	if err != nil {
		return nil, err
	}
	doc := vocab.Doc{"suspended": true}
	for _, name := range []string{"@context", "id", "type", "preferredUsername", "inbox", "publicKey", "assertionMethod", "generator"} {
		doc[name] = d.doc[name]
	}
	return doc, nil
}

// InstanceDocument returns the document of the instance actor. The document is shared, so it
// must not be changed. It is served to everybody without checking a signature, because otherwise
// two servers that fetch each other's keys could wait for each other.
func (l *Local) InstanceDocument() (vocab.Doc, error) {
	d, err := l.describeInstance()
	if err != nil {
		return nil, err
	}
	return d.doc, nil
}

func (l *Local) instanceActor() (*vocab.Actor, error) {
	d, err := l.describeInstance()
	if err != nil {
		return nil, err
	}
	return d.actor, nil
}

// describeUser returns u's actor. It builds the actor again when u's configuration or a key has
// changed, and when the actor is not in the cache any more.
func (l *Local) describeUser(u vocab.Username) (*described, error) {
	if u.IsZero() { // in the cache, the zero name means the instance
		_, err := l.keys.Keys(u)
		return nil, err
	}
	keys, err := l.keys.loadSet(u)
	if err != nil {
		return nil, err
	}
	user := l.profiles.User(u)
	if d, ok := l.documents.get(u); ok && d.keys == keys && reflect.DeepEqual(d.user, user) {
		return d, nil
	}
	return l.rememberDocument(u, &described{user: user, keys: keys, doc: l.personDoc(u, user, keys)})
}

func (l *Local) describeInstance() (*described, error) {
	keys, err := l.keys.loadSet(vocab.Username{})
	if err != nil {
		return nil, err
	}
	if d, ok := l.documents.get(vocab.Username{}); ok && d.keys == keys {
		return d, nil
	}
	return l.rememberDocument(vocab.Username{}, &described{keys: keys, doc: l.applicationDoc(keys)})
}

func (l *Local) rememberDocument(u vocab.Username, d *described) (*described, error) {
	var err error
	if d.actor, err = vocab.ParseActor(d.doc.JSON()); err != nil {
		return nil, fmt.Errorf("read our own actor: %w", err)
	}
	l.documents.put(u, d)
	return d, nil
}

// profileTerms are the terms that our profiles use and that no standard context defines.
var profileTerms = vocab.Doc{
	"schema":        "http://schema.org#",
	"PropertyValue": "schema:PropertyValue",
	"value":         "schema:value",
	"webfinger":     "https://purl.archive.org/socialweb/webfinger#webfinger",
	"movedTo":       vocab.Doc{"@id": "as:movedTo", "@type": "@id"},
	"alsoKnownAs":   vocab.Doc{"@id": "as:alsoKnownAs", "@type": "@id"},
}

func (l *Local) personDoc(u vocab.Username, user registry.User, keys *keyset) vocab.Doc {
	id := string(l.ID(u))
	d := l.actorDoc(id, "Person", u.String(), keys)
	d["inbox"] = string(l.Inbox(u))
	d["outbox"] = string(l.Outbox(u))
	d["followers"] = string(l.Followers(u))
	d["following"] = string(l.Following(u))
	d["featured"] = string(l.Featured(u))
	d["keyPackages"] = string(l.KeyPackages(u))
	d["messages"] = string(l.Messages(u))
	name, value := vocab.DeliversMLS(1, 2, 3)
	d[name] = value
	d["streams"] = []any{string(l.Streams(u))}
	d["endpoints"] = vocab.Doc{"sharedInbox": string(l.SharedInbox()), "realtime": string(l.Realtime(u))}
	if l.pages {
		d["url"] = l.Page(u)
	}
	d["name"] = u.String() // unless the profile has one: Castopod fails at an actor without
	d["published"] = keys.since.UTC().Truncate(24 * time.Hour).Format(time.RFC3339)
	maps.Copy(d, l.profileDoc(u, user))
	return d
}

// SummaryOf returns the summary of u's profile as HTML, with links for addresses, hashtags and
// handles.
func (l *Local) SummaryOf(u vocab.Username, p registry.Profile) string {
	return vocab.TextToHTML(p.Summary, func(s vocab.Span) string {
		if s.Kind == vocab.HandleSpan {
			return p.PageOf(s.Text)
		}
		return l.HrefOf(u, s)
	})
}

// profileDoc returns the part of u's document that comes from u's configuration.
func (l *Local) profileDoc(u vocab.Username, user registry.User) vocab.Doc {
	d := vocab.Doc{}
	d["manuallyApprovesFollowers"] = user.FollowPolicy != registry.AutoAccept
	d["discoverable"] = user.Discoverable
	d["indexable"] = user.Indexable
	p := user.Profile
	if p.Name != "" {
		d["name"] = p.Name
	}
	if p.Summary != "" {
		d["summary"] = l.SummaryOf(u, p)
	}
	for name, picture := range map[string]vocab.ID{"icon": p.Icon, "image": p.Image} {
		if picture != "" {
			d[name] = vocab.Doc{"type": "Image", "url": string(picture)}
		}
	}
	if p.MovedTo != "" {
		d["movedTo"] = string(p.MovedTo)
	}
	if len(p.Aliases) > 0 {
		aliases := make([]any, len(p.Aliases))
		for i, a := range p.Aliases {
			aliases[i] = string(a)
		}
		d["alsoKnownAs"] = aliases
	}
	if len(p.Fields) > 0 {
		d["attachment"] = profileFields(p.Fields)
	}
	return d
}

// ProfileDigest returns a digest of the part of u's document whose changes are announced to
// other servers. The digest changes with u's configuration and when the keys are rotated. A new
// version of this program alone does not change it.
func (l *Local) ProfileDigest(u vocab.Username) []byte {
	told := l.profileDoc(u, l.profiles.User(u)).JSON()
	if keys, err := l.keys.loadSet(u); err == nil && keys.isRotated() {
		told = append(told, keys.pem()...)
	}
	sum := sha256.Sum256(told)
	return sum[:]
}

// applicationDoc returns the document of the instance actor. It names only the endpoints that
// are served for that actor.
func (l *Local) applicationDoc(keys *keyset) vocab.Doc {
	d := l.actorDoc(string(l.InstanceID()), "Application", instanceName, keys)
	d["inbox"] = string(l.SharedInbox())
	// Some relays look for the inbox only here.
	d["endpoints"] = vocab.Doc{"sharedInbox": string(l.SharedInbox())}
	d["name"] = l.host
	d["url"] = l.origin + "/"
	d["manuallyApprovesFollowers"] = true
	return d
}

// actorDoc returns the properties that the documents of users and of the instance share.
func (l *Local) actorDoc(id, kind, name string, keys *keyset) vocab.Doc {
	return vocab.Doc{
		"@context":          append(vocab.ActorContext(), profileTerms),
		"id":                id,
		"type":              kind,
		"preferredUsername": name,
		"webfinger":         name + "@" + l.host, // FEP-2c59
		"publicKey":         vocab.Doc{"id": keys.RSA.ID, "owner": id, "publicKeyPem": keys.pem()},
		"assertionMethod":   keys.multikeys(id),
		// FEP-844e: the generator tells peers that they may sign requests to us with RFC
		// 9421 and Ed25519.
		"generator": vocab.Doc{"type": "Application", "id": string(l.InstanceID()), "name": l.software,
			"implements": vocab.Implements()},
	}
}

// profileFields returns the lines of a profile as PropertyValue attachments, the form that
// Mastodon introduced. A value that is an https address becomes a link.
func profileFields(lines []registry.Field) []any {
	out := make([]any, 0, len(lines))
	for _, f := range lines {
		value := html.EscapeString(f.Value)
		if _, err := vocab.ParseID(f.Value); err == nil && strings.HasPrefix(f.Value, "https://") {
			value = `<a href="` + value + `" rel="me nofollow noopener noreferrer">` + value + `</a>`
		}
		out = append(out, vocab.Doc{"type": "PropertyValue", "name": f.Name, "value": value})
	}
	return out
}
