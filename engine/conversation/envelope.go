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

// maxMessage is how many bytes an MLS message from another server may have. Line ends in its
// base64 count as if they were base64.
const maxMessage = 16 << 20

// mls10 is the protocol version that every message of RFC 9420 begins with, and every key package
// (§6, §10).
var mls10 = []byte{0, 1}

// envelope is an object of a type for MLS messages, as it came. The type is a label that peers put
// on as they like: the header of the message decides. Only a key package must be labelled as one.
type envelope struct {
	message []byte     // nil in the receipt of a failure, which has none
	header  mls.Header // zero of a key package, and of a message that is kept without being understood
}

func readEnvelope(d vocab.Doc) (envelope, error) {
	message, err := readContent(d)
	if err != nil || message == nil {
		return envelope{}, err
	}
	if d.Sealed() == "KeyPackage" {
		return envelope{message: message}, checkKeyPackage(d, message)
	}
	header, _ := mls.ReadHeader(message) // a message that cannot be read is carried
	if _, err := mls.ParseKeyPackage(message); err == nil || header.WireFormat == mls.FormatKeyPackage {
		return envelope{}, badKeyPackage(fault.New(fault.Invalid, "a key package is an object of type KeyPackage"))
	}
	return envelope{message, header}, nil
}

// checkKeyPackage refuses what is no key package, and one whose credential is not, to the byte,
// the actor that the object is attributed to.
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

// readContent returns the message in the object, nil when it has no content.
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

// decodeMessage returns the message that text is base64 of, with or without padding and line ends.
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

// readProperty returns a text of the object under any of its names, and whether it has one. Two
// names that do not say the same are refused: others would read another message.
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
