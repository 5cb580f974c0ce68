package transport

import "mime"

// profile makes JSON-LD ActivityStreams (ActivityPub §3.2).
const profile = "https://www.w3.org/ns/activitystreams"

// The media types of ActivityPub: the first is what is sent, both are what is taken.
const (
	typeLD      = `application/ld+json; profile="` + profile + `"`
	acceptTypes = typeLD + ", application/activity+json"
)

// MediaTypeIsActivity tells whether contentType is one of the two media types that ActivityPub §3.2 names: any other
// document, such as a file somebody uploaded to an honest server, is not that server's word. What is not exactly one
// well-formed type, or names another profile or several, is refused.
func MediaTypeIsActivity(contentType string) bool {
	t, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	return t == "application/activity+json" || t == "application/ld+json" && params["profile"] == profile
}
