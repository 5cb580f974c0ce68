package outbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/conversation"
	"github.com/lightweb/lightweb/engine/fault"
)

// encryptContent consults the type manifest: what must be encrypted never leaves in the open.
func (o *Outbox) encryptContent(_ context.Context, x *exchange) error {
	if conversation.ManifestOf(x.activity.Object.Type()).Encryption == conversation.EncryptionRequired {
		return fault.New(fault.Unprocessable, "objects of this type are sent encrypted only").WithCode("encryption_required")
	}
	return nil
}
