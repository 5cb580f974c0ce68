package conversation

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
	Reviewable bool // may be disliked as well as liked
}

// manifests holds the types that are treated in another way than the zero Manifest says.
var manifests = map[string]Manifest{
	"Article": {Reviewable: true},
	"Audio":   {Reviewable: true},
	"Video":   {Reviewable: true},
	"Product": {Reviewable: true},
	// RFC 9420's messages, as peers name them. They are handed to the clients of a conversation as
	// they came.
	"ChatMessage":    {Encryption: EncryptionRequired},
	"PrivateMessage": {Encryption: EncryptionRequired},
	"PublicMessage":  {Encryption: EncryptionRequired},
	"Welcome":        {Encryption: EncryptionRequired},
	"GroupInfo":      {Encryption: EncryptionRequired},
	"KeyPackage":     {Encryption: EncryptionRequired},
}

// ManifestOf returns the manifest of an object type. A type that nobody knows travels in the open.
func ManifestOf(objectType string) Manifest { return manifests[objectType] }
