package vocab

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/lightweb/lightweb/engine/fault"
)

// Actor is a parsed ActivityPub actor, as its own server describes it. Only ParseActor and
// ActorOf make one.
type Actor struct {
	ID                         ID
	Written                    string // the id as its own server writes it, for documents that are sent
	Type                       string
	PreferredUsername          string // empty when it cannot be part of a handle
	Name                       string // one line, without characters that control the direction of writing
	Inbox, Outbox, SharedInbox ID     // SharedInbox is empty when the server has none
	Followers, Following       ID
	Featured                   ID // empty when it is not on the actor's own server
	Keys                       []ActorKey
	MovedTo                    ID
	Realtime                   ID // endpoints.realtime, for signals about encrypted conversations; empty when there is none
	AlsoKnownAs                []ID
	ApprovesFollowers          bool     // manuallyApprovesFollowers
	Implements                 []string // generator.implements (FEP-844e): URIs of the features that the server supports
	DeliversMLS                int64    // deliveryVersion of lw:mls: the version of the server's protocol for encrypted conversations; 0 is the SWICG draft
	Raw                        json.RawMessage

	reduced bool // the method Reduced made Raw
}

// ActorKey is a public key that an actor lists.
type ActorKey struct {
	ID, Owner ID
	PEM       string // publicKeyPem of a publicKey (RSA); empty for a Multikey
	Multibase string // publicKeyMultibase of a Multikey (FEP-521a); empty for a PEM key
	Asserts   bool   // listed in assertionMethod, so the key may sign proofs of the actor's documents
}

// mlsDelivery is the member of an actor's document that names the server's protocol for
// encrypted conversations.
const mlsDelivery = "lw:mls"

// DeliversMLS returns the name and the value of the member lw:mls for an actor of this engine. The
// value says that the actor accepts messages from the hosts of conversations, and that its private
// keys are on the user's devices.
func DeliversMLS(suites ...any) (name string, value Doc) {
	return mlsDelivery, Doc{"deliveryVersion": 1, "ciphersuites": suites, "custody": "client"}
}

var actorTypes = []string{"Person", "Service", "Application", "Group", "Organization"}

// IsActorType reports whether t is one of the five actor types (ActivityStreams vocabulary §3.2).
func IsActorType(t string) bool { return slices.Contains(actorTypes, t) }

const (
	implementsRFC9421 = "https://datatracker.ietf.org/doc/html/rfc9421"
	implementsEd25519 = implementsRFC9421 + "#name-eddsa-using-curve-edwards25"
)

// TakesEd25519 reports whether the actor's server says that it verifies RFC 9421 signatures made
// with Ed25519 (FEP-844e).
func (a *Actor) TakesEd25519() bool { return slices.Contains(a.Implements, implementsEd25519) }

// Page returns the address of the actor's web page, for links in texts. That is the url in the
// actor's document if it is on the actor's server, else the actor's id.
func (a *Actor) Page() string {
	d, err := ParseDoc(a.Raw)
	if err != nil {
		return a.Written
	}
	if page, err := ParseID(d.Text("url")); err == nil && page.Origin() == a.ID.Origin() {
		return d.Text("url")
	}
	return a.Written
}

// maxKeys is the greatest number of keys of one actor that are read.
const maxKeys = 8

// ParseActor reads an actor document. It must have an id, an actor type and an inbox. ParseActor
// refuses an inbox, outbox, sharedInbox, followers or following of another origin than the id's,
// because otherwise an actor could direct our deliveries at another server. It ignores featured
// and realtime of another origin.
func ParseActor(raw []byte) (*Actor, error) {
	d, err := ParseDoc(raw)
	if err != nil {
		return nil, err
	}
	return ActorOf(d, raw)
}

// ActorOf reads an actor out of a parsed document. The parameter raw holds the bytes of the
// document.
func ActorOf(d Doc, raw []byte) (*Actor, error) {
	a := &Actor{Raw: raw, PreferredUsername: handleName(d.Text("preferredUsername")), Name: OneLine(d.Words("name")),
		ApprovesFollowers: d.Flag("manuallyApprovesFollowers")}
	var err error
	if a.Type, err = d.Type(); err != nil {
		return nil, err
	}
	if a.ID, err = d.ID(); err != nil {
		return nil, err
	}
	if a.ID == "" || !IsActorType(a.Type) {
		return nil, fault.New(fault.Invalid, "the document is not an actor")
	}
	a.Written = d.writtenID()
	endpoints := d.Sub("endpoints")
	for _, p := range []struct {
		into *ID
		doc  Doc
		name string
	}{
		{&a.Inbox, d, "inbox"}, {&a.Outbox, d, "outbox"}, {&a.SharedInbox, endpoints, "sharedInbox"},
		{&a.Followers, d, "followers"}, {&a.Following, d, "following"},
	} {
		r, err := p.doc.Ref(p.name)
		if err != nil {
			return nil, err
		}
		if r.ID != "" && !r.ID.SameOrigin(a.ID) {
			return nil, fault.New(fault.Invalid, "the "+p.name+" of an actor must be on its own server")
		}
		*p.into = r.ID
	}
	if a.Inbox == "" {
		return nil, fault.New(fault.Invalid, "an actor needs an inbox")
	}
	a.Keys = actorKeys(d)
	if ids, err := d.IDs("alsoKnownAs"); err == nil {
		a.AlsoKnownAs = ids
	}
	if r, err := d.Ref("movedTo"); err == nil {
		a.MovedTo = r.ID
	}
	if r, err := endpoints.Ref("realtime"); err == nil && r.ID.SameOrigin(a.ID) {
		a.Realtime = r.ID
	}
	if r, err := d.Ref("featured"); err == nil && r.ID.SameOrigin(a.ID) {
		a.Featured = r.ID
	}
	if version, is := d.Sub(mlsDelivery).Count("deliveryVersion"); is {
		a.DeliversMLS = version
	}
	for _, v := range d.Sub("generator").list("implements") {
		if r, err := toRef(v); err == nil && r.ID != "" {
			a.Implements = append(a.Implements, string(r.ID))
		}
	}
	return a, nil
}

// Bounds of an actor's names, in bytes.
const (
	maxHandleName = 255
	maxName       = 1000
)

// handleName returns s if it may be the name before the host in a handle, else "". It accepts
// letters, marks and digits of all scripts. Of the other characters of RFC 7565 §7, it accepts
// only hyphen, dot, underscore, tilde and plus.
func handleName(s string) string {
	if len(s) > maxHandleName || strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._~+", r)
	}) {
		return ""
	}
	return s
}

// OneLine returns s in a form that can be shown within a line: at most maxName bytes, with
// spaces in place of control characters, and without characters that control the direction of
// writing.
func OneLine(s string) string {
	return plainLine(strings.ToValidUTF8(s[:min(len(s), maxName)], ""))
}

// actorKeys returns the keys that an actor lists. It skips malformed ones, which could not
// verify anything.
func actorKeys(d Doc) []ActorKey {
	var keys []ActorKey
	for _, list := range []string{"publicKey", "assertionMethod"} {
		for _, v := range d.list(list) {
			r, err := toRef(v)
			if err != nil || r.ID == "" {
				continue
			}
			k := KeyOf(r.Doc)
			k.ID = r.ID // a bare id refers to a key in another document
			k.Asserts = list == "assertionMethod"
			keys = append(keys, k)
		}
	}
	return keys[:min(len(keys), maxKeys)]
}

// KeyOf reads a key out of a document, which may be a publicKey (security/v1) or a Multikey
// (FEP-521a). White space around a PEM key is left out, because Socialhome adds kilobytes of it.
func KeyOf(d Doc) ActorKey {
	k := ActorKey{PEM: strings.TrimSpace(d.Text("publicKeyPem")), Multibase: d.Text("publicKeyMultibase")}
	if id, err := d.ID(); err == nil {
		k.ID = id
	}
	for _, name := range []string{"owner", "controller"} {
		if r, err := d.Ref(name); err == nil && r.ID != "" {
			k.Owner = r.ID
		}
	}
	return k
}
