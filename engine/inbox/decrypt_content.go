package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/conversation"
)

// decryptContent looks the type of the object up in the type manifest. A type that may arrive
// unencrypted has nothing to decrypt. An object of a type that must be encrypted is stored as it
// came, for its conversation.
func (p *applier) decryptContent(ctx context.Context, x *applying) error {
	if conversation.ManifestOf(x.Activity.Object.Doc.Sealed()).Encryption == conversation.EncryptionRequired {
		p.Log.DebugContext(ctx, "ciphertext kept", "activity", x.Activity.ID, "type", x.Activity.Object.Type())
	}
	return nil
}
