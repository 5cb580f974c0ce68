package outbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
)

// encryptContent refuses objects of a type that must be encrypted according to the type
// manifest, so that they never leave as plaintext. Of several types, one that must be encrypted
// counts, as it does for the peers.
func (o *Outbox) encryptContent(_ context.Context, x *exchange) error {
	if conversation.ManifestOf(x.activity.Object.Doc.Sealed()).Encryption == conversation.EncryptionRequired {
		return fault.New(fault.Unprocessable, "objects of this type are sent encrypted only").WithCode("encryption_required")
	}
	return nil
}
