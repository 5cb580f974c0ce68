package vocab

import "strings"

// Relationship is the type of the object of an Offer of friendship (ActivityStreams vocabulary
// §5.1).
const Relationship = "Relationship"

// The types of friendship, by their short names.
const (
	FriendOf      = "friendOf"
	CloseFriendOf = "closeFriendOf"
)

// relationships is the namespace of the types of friendship.
const relationships = "https://lightwebbrowser.org/ns/"

// ParseFriendship returns the short name of the type of friendship in value. The value may be a
// URI, or a short name with or without lw: before it. ok is false if value is not a type of
// friendship.
func ParseFriendship(value string) (kind string, ok bool) {
	for _, prefix := range []string{relationships, Lightweb, "lw:"} {
		if rest, cut := strings.CutPrefix(value, prefix); cut {
			value = rest
			break
		}
	}
	return value, value == FriendOf || value == CloseFriendOf
}

// FriendshipSpellings returns the values for ParseFriendship that this engine documents, the
// short names first.
func FriendshipSpellings() (all []string) {
	for _, prefix := range []string{"", "lw:", relationships} {
		all = append(all, prefix+FriendOf, prefix+CloseFriendOf)
	}
	return all
}

// Friendship is a Relationship by which one actor asks another to be friends.
type Friendship struct {
	Type    string // FriendOf or CloseFriendOf
	Subject ID     // the actor who asks
	Object  ID     // the actor who is asked
}

// FriendshipOf reads a Relationship. ok is true if it has a type of friendship.
func FriendshipOf(d Doc) (f Friendship, ok bool, err error) {
	if kinds := d.list("relationship"); len(kinds) == 1 {
		name, _ := kinds[0].(string)
		if named, isDoc := kinds[0].(Doc); isDoc {
			name = named.Text("id")
		}
		f.Type, ok = ParseFriendship(name)
	}
	subject, err := d.Ref("subject")
	if err != nil {
		return f, false, err
	}
	object, err := d.Ref("object")
	f.Subject, f.Object = subject.ID, object.ID
	return f, ok, err
}

// Doc returns the Relationship as a document, with the full URI of its type.
func (f Friendship) Doc() Doc {
	return Doc{"type": Relationship, "subject": string(f.Subject), "relationship": relationships + f.Type, "object": string(f.Object)}
}
