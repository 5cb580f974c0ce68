package inbox

import (
	"context"

	"github.com/lightweb/lightweb/engine/conversation"
)

// decryptContent consults the type manifest. No type that may arrive in the open has anything to
// decrypt; one that must be encrypted is kept as it came, for the conversation it belongs to.
func (p *applier) decryptContent(ctx context.Context, x *applying) error {
	if conversation.ManifestOf(x.Activity.Object.Doc.Sealed()).Encryption == conversation.EncryptionRequired {
		p.Log.DebugContext(ctx, "ciphertext kept", "activity", x.Activity.ID, "type", x.Activity.Object.Type())
	}
	return nil
}
