package transport

import (
	"mime"

	"github.com/lightweb/lightweb/engine/vocab"
)

// acceptTypes are the media types of ActivityPub.
const acceptTypes = vocab.MediaType + ", " + vocab.ActivityJSON

// IsActivityMediaType reports whether contentType is one of the two media types of ActivityPub
// §3.2. A document of any other type may be a file that a user uploaded, so its server does not
// vouch for it. The result is false for a malformed type, for several types, and for another
// profile.
func IsActivityMediaType(contentType string) bool {
	t, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	return t == vocab.ActivityJSON || t == "application/ld+json" && params["profile"] == vocab.ContextAS
}
