package vocab

// The contexts and namespaces of the documents that this engine writes.
const (
	ContextAS       = "https://www.w3.org/ns/activitystreams"
	contextSecurity = "https://w3id.org/security/v1"
	contextDID      = "https://www.w3.org/ns/did/v1"
	contextMultikey = "https://w3id.org/security/multikey/v1"
	contextProof    = "https://w3id.org/security/data-integrity/v1"
	messages        = "https://purl.archive.org/socialweb/mls#"
	Lightweb        = "https://lightwebbrowser.org/ns#"
)

// MediaType is the media type of documents that are served and sent (ActivityPub §3.2).
const MediaType = `application/ld+json; profile="https://www.w3.org/ns/activitystreams"`

// ActivityJSON is the short media type, which means the same as MediaType.
const ActivityJSON = "application/activity+json"

// Context returns the @context of objects and collections. It defines our own terms inline. If
// they were in a context at a URL of ours, federation would fail whenever that URL does not
// answer.
func Context() []any { return []any{ContextAS, ownTerms()} }

// ActivityContext returns the @context of activities. It includes the context of data integrity,
// without which peers do not see proofs.
func ActivityContext() []any { return []any{ContextAS, contextProof, ownTerms()} }

func ownTerms() Doc {
	return Doc{"lw": Lightweb, "lwTags": "lw:tags", "lwMetadata": "lw:metadata", "Hashtag": "as:Hashtag", "sensitive": "as:sensitive",
		"toot": "http://joinmastodon.org/ns#", "focalPoint": Doc{"@id": "toot:focalPoint", "@container": "@list"}}
}

// MessagesContext returns the @context of objects that carry MLS messages.
func MessagesContext() []any { return []any{ContextAS, messageTerms()} }

// MessageActivityContext returns the @context of activities with objects that carry MLS
// messages.
func MessageActivityContext() []any { return append(ActivityContext(), messageTerms()) }

func messageTerms() Doc {
	return Doc{"mls": messages, "KeyPackage": "mls:KeyPackage", "PublicMessage": "mls:PublicMessage", "PrivateMessage": "mls:PrivateMessage",
		"Welcome": "mls:Welcome", "GroupInfo": "mls:GroupInfo", "encoding": "mls:encoding", "ciphersuite": "mls:ciphersuite"}
}

// ConversationContext returns the @context of activities by which the host of a conversation
// forwards MLS messages, or reports the conversation's state. It is MessagesContext with more
// terms.
func ConversationContext() []any {
	c := MessagesContext()
	terms := c[len(c)-1].(Doc)
	terms["lw"], terms["lwMetadata"] = Lightweb, Doc{"@id": "lw:metadata", "@type": "@json"}
	terms["conversation"] = Doc{"@id": "mls:conversation", "@type": "@id"}
	return c
}

// ActorContext returns the @context of actors. It includes the did and multikey contexts,
// without which peers do not see assertionMethod.
func ActorContext() []any {
	return []any{ContextAS, contextSecurity, contextDID, contextMultikey, Doc{
		"manuallyApprovesFollowers": "as:manuallyApprovesFollowers",
		"toot":                      "http://joinmastodon.org/ns#",
		"discoverable":              "toot:discoverable",
		"indexable":                 "toot:indexable",
		"featured":                  Doc{"@id": "toot:featured", "@type": "@id"},
		"realtime":                  Doc{"@id": Lightweb + "realtime", "@type": "@id"},
		"keyPackages":               Doc{"@id": messages + "keyPackages", "@type": "@id"},
		"messages":                  Doc{"@id": messages + "messages", "@type": "@id"},
		"lw":                        Lightweb,
		"deliveryVersion":           "lw:deliveryVersion",
		"ciphersuites":              "lw:ciphersuites",
		"custody":                   "lw:custody",
		"implements":                Doc{"@id": "https://w3id.org/fep/844e/implements", "@type": "@id", "@container": "@list"},
	}}
}

// Implements returns the capabilities that an actor of this engine lists in generator.implements
// (FEP-844e).
func Implements() []any {
	return []any{
		Doc{"name": "RFC-9421: HTTP Message Signatures", "href": implementsRFC9421},
		Doc{"name": "RFC-9421 signatures using the Ed25519 algorithm", "href": implementsEd25519},
	}
}
