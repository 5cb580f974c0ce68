package conversation

import (
	"maps"
	"slices"
)

// Encryption says whether objects of a type are sent encrypted.
type Encryption uint8

// The kinds of Encryption.
const (
	EncryptionNone     Encryption = iota
	EncryptionOptional            // depends on the relationship
	EncryptionRequired            // never sent unencrypted
)

// Manifest has the rules for objects of one type.
type Manifest struct {
	Encryption Encryption
	Actions    []string // the client actions that may be about such an object
}

// Takes reports whether the action may be about an object of the type.
func (m Manifest) Takes(action string) bool { return slices.Contains(m.Actions, action) }

var (
	usual    = []string{"AddToStream", "Boost", "DeleteObject", "Like", "RemoveFromStream", "Reply", "Unboost", "Unlike", "UpdateObject"}
	reviewed = append([]string{"Dislike", "UndoDislike"}, usual...)
)

// post is the manifest of all types that are not in manifests. Objects of these types are sent
// unencrypted.
var post = Manifest{Actions: usual}

// manifests holds the types whose rules differ from those of posts.
var manifests = map[string]Manifest{
	"Article": {Actions: reviewed},
	"Audio":   {Actions: reviewed},
	"Video":   {Actions: reviewed},
	"Product": {Actions: reviewed},
	// Messages of RFC 9420, by the names that other servers use. They are passed to the clients
	// of a conversation unchanged, and no action may be about one.
	"ChatMessage":    {Encryption: EncryptionRequired},
	"PrivateMessage": {Encryption: EncryptionRequired},
	"PublicMessage":  {Encryption: EncryptionRequired},
	"Welcome":        {Encryption: EncryptionRequired},
	"GroupInfo":      {Encryption: EncryptionRequired},
	"KeyPackage":     {Encryption: EncryptionRequired},
}

// ManifestOf returns the manifest of an object type. An unknown type has the manifest of posts.
func ManifestOf(objectType string) Manifest {
	if m, there := manifests[objectType]; there {
		return m
	}
	return post
}

// TypesTaking returns the sorted types whose objects an action may be about. It returns none if
// the action may be about any post, or is about no object.
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
