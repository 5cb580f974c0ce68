package transport

import (
	"mime"

	"github.com/lightweb/lightweb/engine/vocab"
)

// acceptTypes are the media types of ActivityPub.
const acceptTypes = vocab.MediaType + ", " + vocab.ActivityJSON

// MediaTypeIsActivity tells whether contentType is one of the two media types that ActivityPub §3.2
// names: any other document, such as a file somebody uploaded to an honest server, is not that
// server's word. What is not exactly one well-formed type, or names another profile or several, is
// refused.
func MediaTypeIsActivity(contentType string) bool {
	t, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	return t == vocab.ActivityJSON || t == "application/ld+json" && params["profile"] == vocab.ContextAS
}
