package conversation

import (
	"bytes"
	"encoding/base64"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Bounds on the values that a host sends with an entry.
const (
	maxSeq     = 1 << 53 // the largest integer that JSON numbers hold exactly
	maxReceipt = 64      // bytes of a signature
)

// entry is a message of a conversation that came from another server. It has the values of the
// message's MLS header, and the labels that the sending server gave the message.
type entry struct {
	kind       string
	message    []byte
	group      string // from the header; for a Welcome, from the labels
	epoch      int64  // for a Welcome, the epoch that its devices join; 0 if unknown
	generation int32
	seq        int64    // zero if no host has put it in order
	sender     vocab.ID // the actor in whose name it was sent
	object     vocab.ID
	keyPackage []byte // for a Welcome from a host: the key package of the device that it adds
	previous   []byte // the hash of the entry before it
	receipt    []byte
	roster     *rosterSaid
	mislabeled bool // its labels contradict the header
}

// rosterSaid is the list of members that the host of a conversation sent.
type rosterSaid struct {
	actors      []vocab.ID
	roles       []string
	foreign     []vocab.ID // those that know only the SWICG draft
	predecessor vocab.ID   // the conversation that this one continues; empty if the host names none
	isPair      bool       // the conversation is one of two actors: the host and the other member
	isMixed     bool
}

var hostedPath = regexp.MustCompile(`^/conversations/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// IsHosted reports whether a URI names a conversation that the actor hosts. The host of a
// conversation follows from the URI alone.
func IsHosted(uri, host vocab.ID) bool {
	rest, is := strings.CutPrefix(string(uri), string(host.Canonical()))
	return is && hostedPath.MatchString(rest)
}

// IsConversation reports whether a URI has the form of a conversation's URI, of any host.
func IsConversation(uri vocab.ID) bool {
	at := strings.LastIndex(string(uri), "/conversations/")
	return at > 0 && hostedPath.MatchString(string(uri)[at:])
}

// CheckEntry refuses an entry of a log that comes from an actor other than the host, or whose
// labels contradict its MLS header.
func CheckEntry(a *vocab.Activity) error {
	_, err := readEntry(a)
	return err
}

// readEntry reads and checks an Add by which a host puts a message into a log.
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
	if e.kind == user.KindOpaque {
		return nil, badLabel("bad_mls_message", "a log has commits, proposals, application messages and Welcomes", "/object/content")
	}
	e.roster, err = readRoster(a.Doc.Sub("lwMetadata"))
	return e, err
}

// checkPrivate refuses an activity if the activity or its object is addressed to everybody.
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

// readMessage reads the object of an activity that carries an MLS message. The kind follows from
// the header of the message, not from the type of the object. A message that cannot be
// understood is of kind opaque.
func readMessage(a *vocab.Activity) (*entry, error) {
	envelope, err := readEnvelope(a.Object.Doc)
	if err != nil {
		return nil, err
	}
	e := classify(envelope)
	e.sender, e.object, e.mislabeled = a.Actor, a.Object.ID, isMislabeled(envelope.header, e, a.Object.Doc)
	if by, err := a.Object.Doc.IDs("attributedTo"); err == nil && len(by) == 1 {
		e.sender = by[0]
	}
	return e, nil
}

// isMislabeled reports whether the object of a message has another type than the message's header
// says, or names another group or epoch. A Welcome's header has no group and no epoch.
func isMislabeled(h mls.Header, e *entry, d vocab.Doc) bool {
	types := map[mls.WireFormat]string{mls.FormatPublicMessage: "PublicMessage", mls.FormatPrivateMessage: "PrivateMessage", mls.FormatWelcome: "Welcome", mls.FormatGroupInfo: "GroupInfo"}
	t, known := types[h.WireFormat]
	if !known || t != d.Sealed() {
		return known
	}
	labels := d.Sub("lwMetadata")
	group, epoch := labels.Text("mlsGroupId"), labels["mlsEpoch"]
	n, _ := labels.Count("mlsEpoch")
	return t != "Welcome" && (group != "" && group != e.group || epoch != nil && n != e.epoch)
}

// entryOf reads a message that is not in an object of an activity.
func entryOf(message []byte) (*entry, error) {
	h, err := mls.ReadHeader(message)
	if err != nil {
		return nil, err
	}
	return classify(envelope{message, h}), nil
}

// classify returns the entry of a message, with the kind, group and epoch that its header tells.
func classify(m envelope) *entry {
	e, h := &entry{kind: user.KindOpaque, message: m.message}, m.header
	if h.Epoch > math.MaxInt64-1 {
		return e
	}
	e.group, e.epoch = groupName(h.GroupID), int64(h.Epoch)
	switch {
	case h.WireFormat == mls.FormatWelcome:
		e.kind = user.KindWelcome
	case h.WireFormat != mls.FormatPublicMessage && h.WireFormat != mls.FormatPrivateMessage:
	case h.ContentType == mls.ContentCommit:
		e.kind = user.KindCommit
	case h.ContentType == mls.ContentProposal:
		e.kind = user.KindProposal
	case h.WireFormat == mls.FormatPrivateMessage: // unencrypted application data stays opaque
		e.kind = user.KindApplication
	}
	return e
}

// maxGroupID limits the bytes of a group id. A longer id is replaced by its hash.
const maxGroupID = 255

// groupName returns the id of an MLS group as text. It returns base64 if the id is too long, is
// not valid text, or begins with "base64:".
func groupName(id []byte) string {
	if len(id) <= maxGroupID && utf8.Valid(id) && !bytes.ContainsRune(id, 0) && !bytes.HasPrefix(id, []byte("base64:")) {
		return string(id)
	}
	if len(id) > maxGroupID {
		id = hashOf(id)
	}
	return "base64:" + base64.RawURLEncoding.EncodeToString(id)
}

// readLabels reads the labels that the host gave the message. Labels that contradict the MLS
// header are refused.
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
	if e.kind == user.KindWelcome {
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

// readWelcomeLabels reads the labels that the host gave a Welcome, whose header tells neither
// group nor epoch. The host may leave out the epoch that the device joins.
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

// readBytes decodes a property from base64. It returns nil if the text is not base64, or is
// longer than any hash or signature.
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

// readRoster reads the members of a conversation. It returns nil if none are listed.
func readRoster(d vocab.Doc) (*rosterSaid, error) {
	members := d.Subs("members")
	if len(members) == 0 {
		return nil, nil
	}
	if len(members) > mls.MaxMembers {
		return nil, badLabel("too_many_members", "a conversation has 256 members at most", "/lwMetadata/members")
	}
	r, seen := &rosterSaid{isPair: d.Flag("pair"), isMixed: d.Flag("mixed")}, map[vocab.ID]bool{}
	for _, m := range members {
		id, err := vocab.ParseID(m.Text("id"))
		if err != nil {
			return nil, err
		}
		if seen[id] {
			continue
		}
		seen[id] = true
		role := user.RoleMember
		if m.Text("role") == user.RoleAdmin {
			role = user.RoleAdmin
		}
		r.actors, r.roles = append(r.actors, id), append(r.roles, role)
		if m["lightweb"] == false {
			r.foreign = append(r.foreign, id)
		}
	}
	if said := d.Text("predecessor"); said != "" {
		if r.predecessor = vocab.IDOf(said).Canonical(); !IsConversation(r.predecessor) {
			return nil, badLabel("bad_predecessor", "the conversation before is named by its URI", "/lwMetadata/predecessor")
		}
	}
	return r, nil
}

// cutContent removes bto, bcc and the base64 of the message from the text of an activity, and
// returns the rest and the offset of the cut. If the text does not contain the base64 that this
// engine makes of the message, cutContent returns the text with the message in it, and -1.
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

// JoinContent returns the text of an activity as it was received, without bto and bcc. It puts
// the message back in its place.
func JoinContent(e user.InboxEntry) string {
	if e.ContentAt < 0 {
		return e.Activity
	}
	return e.Activity[:e.ContentAt] + base64.StdEncoding.EncodeToString(e.Content) + e.Activity[e.ContentAt:]
}
