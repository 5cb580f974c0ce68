package conversation

import (
	"bytes"
	"encoding/base64"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds of what a host says of an entry.
const (
	maxSeq     = 1 << 53 // what JSON holds exactly
	maxReceipt = 64      // bytes of a signature
)

// entry is a message of a conversation as it came from elsewhere: what its MLS header says, and
// what is said of it.
type entry struct {
	kind       string
	message    []byte
	group      string // of the header; of a Welcome what its sender says
	epoch      int64  // of a Welcome the one it lets into, 0 when nobody says
	generation int32
	seq        int64    // zero: nobody has put it in order
	sender     vocab.ID // in whose name it was sent
	object     vocab.ID
	keyPackage []byte // of a Welcome of a host: the one that it is for
	previous   []byte // the hash of the entry before it
	receipt    []byte
	roster     *rosterSaid
}

// rosterSaid is who is in a conversation as its host says.
type rosterSaid struct {
	actors []vocab.ID
	roles  []string
}

// names returns who is in it; nobody when its host did not say.
func (r *rosterSaid) names() []vocab.ID {
	if r == nil {
		return nil
	}
	return r.actors
}

var hostedPath = regexp.MustCompile(`^/conversations/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IsHosted reports whether a URI is that of a conversation of an actor: who puts a conversation in
// order is told by its URI alone.
func IsHosted(uri, host vocab.ID) bool {
	rest, is := strings.CutPrefix(string(uri), string(host.Canonical()))
	return is && hostedPath.MatchString(rest)
}

// IsConversation reports whether a URI may be that of a conversation that an actor puts in order.
func IsConversation(uri vocab.ID) bool {
	at := strings.LastIndex(string(uri), "/conversations/")
	return at > 0 && hostedPath.MatchString(string(uri)[at:])
}

// CheckEntry refuses what claims to be of the log of a conversation and cannot be: of another
// actor than its host, or with labels that are not what the MLS header says.
func CheckEntry(a *vocab.Activity) error {
	_, err := readEntry(a)
	return err
}

// readEntry reads what a host put into a log.
func readEntry(a *vocab.Activity) (*entry, error) {
	d := a.Object.Doc
	if !IsHosted(a.Target.ID, a.Actor) {
		return nil, fault.New(fault.Forbidden, "only its host puts something into a conversation").WithCode("not_host").At("/target")
	}
	for _, name := range []string{"conversation", "context"} {
		if said := d.Text(name); said != "" && !vocab.IDOf(said).Same(a.Target.ID) {
			return nil, fault.New(fault.Invalid, "the message is of another conversation than the one it is put into").WithCode("wrong_conversation").At("/object/" + name)
		}
	}
	if err := checkPrivate(a); err != nil {
		return nil, err
	}
	e, err := readMessage(a)
	if err != nil {
		return nil, err
	}
	if !e.object.SameOrigin(a.Actor) {
		return nil, fault.New(fault.Invalid, "the id of a message is on the server of its host").WithCode("foreign_object").At("/object/id")
	}
	if err := e.readLabels(d.Sub("lwMetadata")); err != nil {
		return nil, err
	}
	if e.kind == db.KindOpaque {
		return nil, badLabel("bad_mls_message", "a log has commits, proposals, application messages and Welcomes", "/object/content")
	}
	e.roster, err = readRoster(a.Doc.Sub("lwMetadata"))
	return e, err
}

// checkPrivate refuses messages that are addressed to everybody.
func checkPrivate(a *vocab.Activity) error {
	to, err := vocab.AddressingOf(a.Object.Doc)
	if err != nil {
		return err
	}
	for _, id := range append(a.Addressing.All(), to.All()...) {
		if id == vocab.Public {
			return fault.New(fault.Invalid, "messages of a conversation are for its members alone").WithCode("public_message").At("/to")
		}
	}
	return nil
}

// readMessage reads the object of an activity that carries a message of MLS. Its header decides
// what it is, whatever it is called; what cannot be understood is opaque.
func readMessage(a *vocab.Activity) (*entry, error) {
	envelope, err := readEnvelope(a.Object.Doc)
	if err != nil {
		return nil, err
	}
	e := classify(envelope)
	e.sender, e.object = a.Actor, a.Object.ID
	if by, err := a.Object.Doc.IDs("attributedTo"); err == nil && len(by) == 1 {
		e.sender = by[0]
	}
	return e, nil
}

// entryOf reads a message that came without an object.
func entryOf(message []byte) (*entry, error) {
	h, err := mls.ReadHeader(message)
	if err != nil {
		return nil, err
	}
	return classify(envelope{message, h}), nil
}

// classify says what a message is by its header.
func classify(m envelope) *entry {
	e, h := &entry{kind: db.KindOpaque, message: m.message}, m.header
	if h.Epoch > math.MaxInt64-1 {
		return e
	}
	e.group, e.epoch = groupName(h.GroupID), int64(h.Epoch)
	switch {
	case h.WireFormat == mls.FormatWelcome:
		e.kind = db.KindWelcome
	case h.WireFormat != mls.FormatPublicMessage && h.WireFormat != mls.FormatPrivateMessage:
	case h.ContentType == mls.ContentCommit:
		e.kind = db.KindCommit
	case h.ContentType == mls.ContentProposal:
		e.kind = db.KindProposal
	case h.WireFormat == mls.FormatPrivateMessage: // application data in the open is opaque
		e.kind = db.KindApplication
	}
	return e
}

// maxGroupID is how many bytes of a group id are kept as they are.
const maxGroupID = 255

// groupName returns the id of an MLS group as text. An id that is none is encoded.
func groupName(id []byte) string {
	if len(id) <= maxGroupID && utf8.Valid(id) && !bytes.ContainsRune(id, 0) && !bytes.HasPrefix(id, []byte("base64:")) {
		return string(id)
	}
	if len(id) > maxGroupID {
		id = hashOf(id)
	}
	return "base64:" + base64.RawURLEncoding.EncodeToString(id)
}

// readLabels reads what the host says of the message. It never counts more than the header.
func (e *entry) readLabels(d vocab.Doc) error {
	seq, has := d.Count("seq")
	if !has || seq < 1 || seq > maxSeq {
		return badLabel("bad_seq", "an entry of a log has a number", "/object/lwMetadata/seq")
	}
	generation, has := d.Count("mlsGeneration")
	if !has && d["mlsGeneration"] != nil || generation < 0 || generation > math.MaxInt32 {
		return badLabel("bad_generation", "a generation is a number", "/object/lwMetadata/mlsGeneration")
	}
	e.seq, e.generation = seq, int32(generation)
	if e.kind == db.KindWelcome {
		return e.readWelcomeLabels(d)
	}
	if d.Text("mlsGroupId") != e.group {
		return badLabel("wrong_group", "the MLS message is of another group than is said of it", "/object/lwMetadata/mlsGroupId")
	}
	if epoch, has := d.Count("mlsEpoch"); !has || epoch != e.epoch {
		return badLabel("wrong_epoch", "the MLS message is of another epoch than is said of it", "/object/lwMetadata/mlsEpoch")
	}
	e.previous, e.receipt = readBytes(d, "previousHash"), readBytes(d, "receipt")
	return nil
}

// readWelcomeLabels reads what the host says of a Welcome, whose header tells neither group nor
// epoch. A host may leave out the epoch that it lets into.
func (e *entry) readWelcomeLabels(d vocab.Doc) error {
	w, err := mls.ParseWelcome(e.message)
	if err != nil {
		return fault.Wrap(fault.Invalid, fault.Public(err), err).WithCode("bad_mls_message").At("/object/content")
	}
	epoch, has := d.Count("mlsEpoch")
	if !has && d["mlsEpoch"] != nil || epoch < 0 || epoch > maxSeq {
		return badLabel("wrong_epoch", "a Welcome lets into an epoch, which is a number", "/object/lwMetadata/mlsEpoch")
	}
	e.epoch, e.keyPackage = epoch, readBytes(d, "keyPackageRef")
	for _, ref := range w.KeyPackages {
		if len(ref) > 0 && bytes.Equal(ref, e.keyPackage) {
			if e.group = d.Text("mlsGroupId"); e.group == "" || e.group != groupName([]byte(e.group)) {
				return badLabel("wrong_group", "a Welcome to a conversation comes with the id of its MLS group", "/object/lwMetadata/mlsGroupId")
			}
			return nil
		}
	}
	return badLabel("wrong_key_package", "the Welcome is not for the key package that is said of it", "/object/lwMetadata/keyPackageRef")
}

func badLabel(code, public, pointer string) error {
	return fault.New(fault.Invalid, public).WithCode(code).At(pointer)
}

// readBytes returns what base64 says, nil when it is none or longer than any hash or signature.
func readBytes(d vocab.Doc, name string) []byte {
	text := d.Text(name)
	if text == "" || len(text) > base64.StdEncoding.EncodedLen(maxReceipt) {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return b
}

// readRoster reads who is in a conversation, nil when nothing is said.
func readRoster(d vocab.Doc) (*rosterSaid, error) {
	members := d.Subs("members")
	if len(members) == 0 {
		return nil, nil
	}
	if len(members) > mls.MaxMembers {
		return nil, badLabel("too_many_members", "a conversation has 256 members at most", "/lwMetadata/members")
	}
	r, seen := &rosterSaid{}, map[vocab.ID]bool{}
	for _, m := range members {
		id, err := vocab.ParseID(m.Text("id"))
		if err != nil {
			return nil, err
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		role := db.RoleMember
		if m.Text("role") == db.RoleAdmin {
			role = db.RoleAdmin
		}
		r.actors, r.roles = append(r.actors, id), append(r.roles, role)
	}
	return r, nil
}

// cutContent returns an activity as it came, without the message in it, and where that stood; -1
// when it is written otherwise than this engine would write it.
func cutContent(a *vocab.Activity, message []byte) (rest string, at int32) {
	raw := []byte(a.Raw)
	if a.Doc.Hides() {
		raw = a.Doc.WithoutHidden().JSON()
	}
	if text := base64.StdEncoding.AppendEncode(nil, message); len(text) > 0 && len(raw) <= math.MaxInt32 {
		if i := bytes.Index(raw, text); i >= 0 {
			return string(raw[:i]) + string(raw[i+len(text):]), int32(i)
		}
	}
	return string(raw), -1
}

// JoinContent returns an activity as it came.
func JoinContent(e db.InboxEntry) string {
	if e.ContentAt < 0 {
		return e.Activity
	}
	return e.Activity[:e.ContentAt] + base64.StdEncoding.EncodeToString(e.Content) + e.Activity[e.ContentAt:]
}
