package conversation

import (
	"maps"
	"slices"
)

// Encryption says whether the content of a type travels as ciphertext.
type Encryption uint8

// The ways a type may travel.
const (
	EncryptionNone     Encryption = iota
	EncryptionOptional            // as the relationship allows
	EncryptionRequired            // never in the open
)

// Manifest says how objects of one type are treated.
type Manifest struct {
	Encryption Encryption
	Actions    []string // of the vocabulary of clients, that may be about one
}

// Takes reports whether the action may be about an object of the type.
func (m Manifest) Takes(action string) bool { return slices.Contains(m.Actions, action) }

// Reviewable reports whether objects of the type may be disliked as well as liked.
func (m Manifest) Reviewable() bool { return m.Takes("Dislike") }

var (
	usual    = []string{"AddToStream", "Boost", "DeleteObject", "Like", "RemoveFromStream", "Reply", "Unboost", "Unlike", "UpdateObject"}
	reviewed = append([]string{"Dislike", "UndoDislike"}, usual...)
)

// post is the manifest of types that stand in no table: they travel in the open.
var post = Manifest{Actions: usual}

// manifests holds the types that are treated in another way than posts are.
var manifests = map[string]Manifest{
	"Article": {Actions: reviewed},
	"Audio":   {Actions: reviewed},
	"Video":   {Actions: reviewed},
	"Product": {Actions: reviewed},
	// RFC 9420's messages, as peers name them. They are handed to the clients of a conversation as
	// they came, and nothing is done to one.
	"ChatMessage":    {Encryption: EncryptionRequired},
	"PrivateMessage": {Encryption: EncryptionRequired},
	"PublicMessage":  {Encryption: EncryptionRequired},
	"Welcome":        {Encryption: EncryptionRequired},
	"GroupInfo":      {Encryption: EncryptionRequired},
	"KeyPackage":     {Encryption: EncryptionRequired},
}

// ManifestOf returns the manifest of an object type. A type that nobody knows is a post.
func ManifestOf(objectType string) Manifest {
	if m, there := manifests[objectType]; there {
		return m
	}
	return post
}

// TypesTaking returns the types whose objects alone an action may be about, in order: none when it
// may be about posts of any type.
func TypesTaking(action string) (types []string) {
	if post.Takes(action) {
		return nil
	}
	for _, t := range slices.Sorted(maps.Keys(manifests)) {
		if manifests[t].Takes(action) {
			types = append(types, t)
		}
	}
	return types
}
