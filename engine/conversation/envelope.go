package conversation

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/mls"
	"github.com/lightweb/lightweb/engine/vocab"
)

// maxMessage limits the bytes of an MLS message from another server. Each line end in the
// message's base64 counts like a base64 character.
const maxMessage = 16 << 20

// mls10 is the protocol version at the start of every MLS message and every key package (RFC
// 9420 §6, §10).
var mls10 = []byte{0, 1}

// envelope is the MLS message in an object, and its header. Servers choose the type of the object
// as they like, so only the header says which kind of message it is. As an exception, a key
// package must be in an object of the type KeyPackage.
type envelope struct {
	message []byte     // nil if the object has no content, for example if it reports a failure
	header  mls.Header // zero for a key package, and for a message whose header cannot be read
}

func readEnvelope(d vocab.Doc) (envelope, error) {
	message, err := readContent(d)
	if err != nil || message == nil {
		return envelope{}, err
	}
	if d.Sealed() == "KeyPackage" {
		return envelope{message: message}, checkKeyPackage(d, message)
	}
	header, _ := mls.ReadHeader(message) // an unreadable message is passed on
	if _, err := mls.ParseKeyPackage(message); err == nil || header.WireFormat == mls.FormatKeyPackage {
		return envelope{}, badKeyPackage(fault.New(fault.Invalid, "a key package is an object of type KeyPackage"))
	}
	return envelope{message, header}, nil
}

// checkKeyPackage refuses a message that is not a key package. It also refuses a key package if a
// byte of its credential differs from the text in attributedTo of the object.
func checkKeyPackage(d vocab.Doc, message []byte) error {
	k, err := mls.ParseKeyPackage(message)
	if err != nil {
		return badKeyPackage(err)
	}
	if k.Leaf.Identity == nil || string(k.Leaf.Identity) != d.Text("attributedTo") {
		return badKeyPackage(mls.ErrIdentity)
	}
	return nil
}

func badKeyPackage(err error) error {
	return fault.Wrap(fault.Invalid, fault.Public(err), err).WithCode("bad_key_package").At("/object/content")
}

// IsMessage reports whether an object contains an MLS message whose header can be read.
func IsMessage(d vocab.Doc) bool {
	e, err := readEnvelope(d)
	return err == nil && e.header.WireFormat != 0
}

// readContent returns the message in the object, or nil if the object has no content.
func readContent(d vocab.Doc) ([]byte, error) {
	content, has, err := readProperty(d, "content")
	if err != nil || !has {
		return nil, err
	}
	encoding, has, err := readProperty(d, "encoding")
	if err != nil {
		return nil, err
	}
	if has && encoding != "base64" {
		return nil, fault.New(fault.Invalid, "the encoding of an MLS message is base64").WithCode("bad_encoding").At("/object/encoding")
	}
	return decodeMessage(content)
}

// decodeMessage decodes a message from base64, with or without padding and line ends.
func decodeMessage(text string) ([]byte, error) {
	text = strings.TrimRight(text, "=\r\n")
	if base64.RawStdEncoding.DecodedLen(len(text)) > maxMessage {
		return nil, fault.New(fault.TooLarge, fmt.Sprintf("an MLS message has at most %d bytes", maxMessage)).At("/object/content")
	}
	message, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || !bytes.HasPrefix(message, mls10) {
		return nil, plain("content")
	}
	return message, nil
}

// readProperty returns a text property of the object. The name of the property may have any of
// three prefixes, one of which is empty. The result "has" is false if the object has none of the
// three names. The object is refused if two of them have different values, because other servers
// might read the other value.
func readProperty(d vocab.Doc, name string) (text string, has bool, err error) {
	for _, prefix := range []string{"", "mls:", "https://purl.archive.org/socialweb/mls#"} {
		v := d[prefix+name]
		if v == nil {
			continue
		}
		said, is := v.(string)
		if !is || has && said != text {
			return "", false, plain(name)
		}
		text, has = said, true
	}
	return text, has, nil
}
