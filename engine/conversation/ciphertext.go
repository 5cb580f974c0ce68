package conversation

import (
	"encoding/base64"
	"strings"

	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// mls10 is the protocol version that every message of RFC 9420 begins with, and every key package
// (§6, §10).
const mls10 = "\x00\x01"

// CheckCiphertext refuses an object of a type that must be encrypted whose words stand in the open.
// Nothing is decrypted: what is base64 of what begins as an MLS message passes for one. A message
// without content, such as the receipt of a failure, says nothing.
func CheckCiphertext(d vocab.Doc) error {
	if ManifestOf(d.Sealed()).Encryption != EncryptionRequired {
		return nil
	}
	for _, name := range []string{"contentMap", "source"} {
		if d[name] != nil {
			return plain(name)
		}
	}
	content := d["content"]
	if content == nil {
		return nil
	}
	if text, ok := content.(string); !ok || !isCiphertext(text) {
		return plain("content")
	}
	return nil
}

func plain(name string) error {
	return fault.New(fault.Invalid, "an object of this type must be encrypted: its content is base64 of an MLS message").WithCode("plain_text").At("/object/" + name)
}

func isCiphertext(text string) bool {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, text)
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	return err == nil && strings.HasPrefix(string(raw), mls10)
}
