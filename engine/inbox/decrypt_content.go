package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/conversation"
)

// decryptContent looks up the type of the object in the type manifest. It decrypts nothing. An
// object of a type that must be encrypted is stored as it came, for its conversation. An object
// of any other type may arrive unencrypted.
func (p *applier) decryptContent(ctx context.Context, x *applying) error {
	if conversation.ManifestOf(x.Activity.Object.Doc.Sealed()).Encryption == conversation.EncryptionRequired {
		p.Log.DebugContext(ctx, "ciphertext kept", "activity", x.Activity.ID, "type", x.Activity.Object.Type())
	}
	return nil
}
