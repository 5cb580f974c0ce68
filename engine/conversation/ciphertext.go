package conversation

import (
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// CheckCiphertext checks an object if its type requires encryption, and accepts all other
// objects. It refuses an object that has readable text beside the content, or whose content
// cannot be an MLS message for the object's type. Nothing is decrypted.
func CheckCiphertext(d vocab.Doc) error {
	if ManifestOf(d.Sealed()).Encryption != EncryptionRequired {
		return nil
	}
	for _, name := range []string{"contentMap", "source"} {
		if d[name] != nil {
			return plain(name)
		}
	}
	_, err := readEnvelope(d)
	return err
}

func plain(name string) error {
	return fault.New(fault.Invalid, "an object of this type must be encrypted: its content is base64 of an MLS message").WithCode("plain_text").At("/object/" + name)
}
