package conversation

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// The tests F1 to F13 have objects in the forms that other MLS servers send.

const (
	emissary = "https://emissary.example/@alice"
	groupID  = "urn:uuid:6b1e6d2c-3c76-4a0e-8f0a-52d1b7f5f9d0"
)

// vector returns the length of b followed by b (RFC 9420 §2.1.2).
func vector(b string) string {
	if len(b) < 1<<6 {
		return string([]byte{byte(len(b))}) + b
	}
	return string([]byte{1<<6 | byte(len(b)>>8), byte(len(b))}) + b
}

// privateMessage returns a PrivateMessage of epoch 7. The engine cannot decrypt it.
func privateMessage(t mls.ContentType) string {
	return "\x00\x01\x00\x02" + vector(groupID) + "\x00\x00\x00\x00\x00\x00\x00\x07" + string([]byte{byte(t)}) +
		vector("") + vector(strings.Repeat("s", 28)) + vector(strings.Repeat("c", 300))
}

const welcome = "\x00\x01\x00\x03\x00\x01\x00\x01w"

// keyPackage returns a key package without a frame. Its signatures are not valid: the engine
// checks them only when the package is added to a group.
func keyPackage(suite byte, keyLength int, identity string) string {
	key := vector(strings.Repeat("k", keyLength))
	leaf := key + key + "\x00\x01" + vector(identity) + "\x02\x00\x01\x02\x00\x01\x00\x00\x02\x00\x01" + "\x01" + strings.Repeat("\x00", 16) + "\x00" + vector("signature")
	return "\x00\x01\x00" + string([]byte{suite}) + key + leaf + "\x00" + vector("signature")
}

// object returns an object of a type, with the parameter message as its content. The parameter
// more has further properties, as names and values by turns.
func object(t *testing.T, kind, message string, more ...any) vocab.Doc {
	t.Helper()
	d := vocab.Doc{
		"type": kind, "attributedTo": emissary, "to": []any{"https://a.example/users/bob"},
		"mediaType": "message/mls", "encoding": "base64", "content": base64.StdEncoding.EncodeToString([]byte(message)),
	}
	for i := 0; i < len(more); i += 2 {
		d[more[i].(string)] = more[i+1]
	}
	d, err := vocab.ParseDoc(d.JSON())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestF1KeyPackagesBareAndWrapped(t *testing.T) {
	t.Parallel()
	for suite, keyLength := range map[byte]int{1: 32, 2: 65, 3: 32, 5: 133} {
		bare := keyPackage(suite, keyLength, emissary)
		for form, message := range map[string]string{"bare": bare, "wrapped": "\x00\x01\x00\x05" + bare} {
			d := object(t, "KeyPackage", message)
			if e, err := readEnvelope(d); err != nil || string(e.message) != message {
				t.Errorf("suite %d, %s: %+v, %v", suite, form, e, err)
			}
			d["attributedTo"] = emissary + "/"
			if err := CheckCiphertext(d); !errors.Is(err, mls.ErrIdentity) {
				t.Errorf("suite %d, %s, of another actor: %v, want %v", suite, form, err, mls.ErrIdentity)
			}
			d["type"] = "PrivateMessage"
			if err := CheckCiphertext(d); fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Public(err), "of type KeyPackage") {
				t.Errorf("suite %d, %s, called PrivateMessage: %v, want it refused", suite, form, err)
			}
		}
	}
	if err := CheckCiphertext(object(t, "KeyPackage", privateMessage(mls.ContentApplication))); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a PrivateMessage called KeyPackage: %v, want it refused", err)
	}
}

func TestF2SpellingsOfTypesAndProperties(t *testing.T) {
	t.Parallel()
	message := privateMessage(mls.ContentApplication)
	for _, kind := range []any{
		"PrivateMessage", "mls:PrivateMessage", "https://purl.archive.org/socialweb/mls#PrivateMessage",
		[]any{"Object", "PrivateMessage"}, []any{"Object", "PrivateMessage", "ChatMessage"}, []any{"mls:PrivateMessage"},
	} {
		for _, prefix := range []string{"", "mls:", "https://purl.archive.org/socialweb/mls#"} {
			d := object(t, "", message, "type", kind)
			for _, name := range []string{"content", "encoding"} {
				v := d[name]
				delete(d, name)
				d[prefix+name] = v
			}
			e, err := readEnvelope(d)
			if err != nil || string(e.message) != message || string(e.header.GroupID) != groupID || e.header.Epoch != 7 {
				t.Errorf("%v, %scontent: %+v, %v", kind, prefix, e, err)
			}
			d[prefix+"content"] = "<p>hello</p>"
			if err := CheckCiphertext(d); fault.KindOf(err) != fault.Invalid {
				t.Errorf("%v, words in %scontent: %v, want them refused", kind, prefix, err)
			}
		}
	}
	d := object(t, "PrivateMessage", message, "mls:content", "AAEAAgEC/w==")
	if err := CheckCiphertext(d); fault.KindOf(err) != fault.Invalid {
		t.Errorf("two contents: %v, want them refused", err)
	}
}

func TestF3CommitCalledGroupInfo(t *testing.T) {
	t.Parallel()
	e, err := readEnvelope(object(t, "GroupInfo", privateMessage(mls.ContentCommit), "context", groupID, "instrument", "urn:uuid:client"))
	if err != nil || e.header.WireFormat != mls.FormatPrivateMessage || e.header.ContentType != mls.ContentCommit || string(e.header.GroupID) != groupID {
		t.Errorf("%+v, %v; want the commit that its header says", e, err)
	}
}

func TestF5FailureWithoutContent(t *testing.T) {
	t.Parallel()
	d := object(t, "", "", "type", []any{"PrivateMessage", "Failure"}, "object", "https://a.example/users/bob/objects/1")
	for _, absent := range []string{"content", "mediaType", "encoding"} {
		delete(d, absent)
	}
	if e, err := readEnvelope(d); err != nil || e.message != nil {
		t.Errorf("%+v, %v; want a receipt without a message", e, err)
	}
}

func TestF12WelcomeWithTopology(t *testing.T) {
	t.Parallel()
	for _, topology := range []string{"FullMesh", "mls:Star"} {
		e, err := readEnvelope(object(t, "Welcome", welcome, "topology", topology, "context", nil))
		if err != nil || e.header.WireFormat != mls.FormatWelcome || string(e.message) != welcome {
			t.Errorf("%s: %+v, %v", topology, e, err)
		}
	}
}

// The engine stores a message that it cannot read, because the user's client may be able to read
// it.
func TestMessagesThatCannotBeReadAreKept(t *testing.T) {
	t.Parallel()
	message := "\x00\x01\x00\x04 a group info of tomorrow"
	if e, err := readEnvelope(object(t, "GroupInfo", message)); err != nil || string(e.message) != message || e.header.WireFormat != 0 {
		t.Errorf("%+v, %v; want it kept", e, err)
	}
}

func TestContentIsBase64(t *testing.T) {
	t.Parallel()
	message := privateMessage(mls.ContentApplication)
	padded := base64.StdEncoding.EncodeToString([]byte(message))
	for name, content := range map[string]string{
		"padded": padded, "bare": strings.TrimRight(padded, "="),
		"in lines": padded[:76] + "\r\n" + padded[76:] + "\n",
	} {
		if e, err := readEnvelope(object(t, "PrivateMessage", "", "content", content)); err != nil || string(e.message) != message {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	for _, encoding := range []any{"hex", "", []any{"base64"}} {
		if err := CheckCiphertext(object(t, "PrivateMessage", message, "encoding", encoding)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("encoding %q: %v, want it refused", encoding, err)
		}
	}
	d := object(t, "PrivateMessage", message)
	delete(d, "encoding")
	if err := CheckCiphertext(d); err != nil {
		t.Errorf("without encoding: %v, want base64 meant", err)
	}
}

func TestMessagesHaveAMostSize(t *testing.T) {
	t.Parallel()
	largest := append([]byte{0, 1}, bytes.Repeat([]byte{9}, maxMessage-2)...)
	if _, err := decodeMessage(base64.StdEncoding.EncodeToString(largest)); err != nil {
		t.Errorf("%d bytes: %v", len(largest), err)
	}
	over := base64.RawStdEncoding.EncodeToString(append(largest, 9))
	if _, err := decodeMessage(over); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("a byte more: %v, want it too large", err)
	}
}
