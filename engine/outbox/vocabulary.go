package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// params are the parameters of an action.
type params interface {
	// checkParams refuses parameters whose types are right but whose values are wrong.
	checkParams() error
}

// intent is the effect of an action that becomes an activity, with its parameters.
type intent interface {
	params
	// findRecipients finds the actors and objects that the action is about, and sets the
	// addressing.
	findRecipients(ctx context.Context, f *finder, x *exchange) error
	// constructObject returns the type and the object of the activity.
	constructObject(local *actor.Local, x *exchange) (kind string, object any)
	// lockName returns the name of the lock that is held while the activity is stored. Two
	// dispatches with the same lock are stored one after the other. The name is empty if no lock
	// is needed.
	lockName() string
	// findEarlier returns the id of an earlier activity that did the same. The id is empty if
	// no earlier activity did the same; then the action must be done. A fault refuses an
	// action that has become impossible. The caller holds the lock.
	findEarlier(ctx context.Context, tx *user.Tx, x *exchange) (vocab.ID, error)
}

var (
	people    = []string{instance.ScopeWrite, instance.ScopeAdmin}
	assistant = []string{instance.ScopeWrite, instance.ScopeAdmin, instance.ScopeLLM} // for actions that an LLM engine may dispatch, too
)

// action is an entry of the vocabulary.
type action struct {
	read   func(json.RawMessage) (params, error)
	params reflect.Type // the struct that the parameters are decoded into
	scopes []string     // the token needs one of them
	words  string       // the description for clients and people
}

func word[T any, P interface {
	*T
	intent
}](scopes []string, words string) action {
	return action{readParams[T, P], reflect.TypeFor[T](), scopes, words}
}

func localWord[T any, P interface {
	*T
	localIntent
}](scopes []string, words string) action {
	return action{readParams[T, P], reflect.TypeFor[T](), scopes, words}
}

func sealedWord[T any, P interface {
	*T
	sealedIntent
}](scopes []string, words string) action {
	return action{readParams[T, P], reflect.TypeFor[T](), scopes, words}
}

// vocabulary has every action that can be dispatched. For security, nothing adds an action at run
// time.
var vocabulary = map[string]action{
	"Follow":              word[follow](people, "Follow an actor."),
	"Unfollow":            word[unfollow](people, "Take a Follow back."),
	"AcceptFollow":        word[acceptFollow](people, "Let an actor follow."),
	"RejectFollow":        word[rejectFollow](people, "Refuse, or end, an actor's follow."),
	"AcceptRequest":       word[acceptRequest](people, "Take a stranger's private messages: those that wait go to the feed, and further ones come as others do. The stranger is not told."),
	"DeclineRequest":      word[declineRequest](people, "Remove a stranger's private messages that wait. The stranger is not told; further ones wait again."),
	"CreateNote":          word[createNote](assistant, "Write a note: for everybody, or for those that to and cc name. An answer that names nobody is as visible as what it answers; it is direct if that is local to another server."),
	"CreateArticle":       word[createArticle](people, "Write an article: a text with a title."),
	"CreateObject":        word[createObject](people, "Publish an Audio, Video or Product: a file, or a thing, with a title and words about it."),
	"CreateStream":        word[createStream](people, "Make a stream: a public collection of objects. There are up to 100."),
	"DeleteStream":        word[deleteStream](people, "Delete a stream. The objects that were in it stay."),
	"AddToStream":         word[addToStream](people, "Put a public object into a stream; into featured, one of the user's own."),
	"RemoveFromStream":    word[removeFromStream](people, "Take an object out of a stream."),
	"Reply":               word[reply](assistant, "Answer an object, as visible as that is, or direct if that is local to another server."),
	"SendMessage":         word[sendMessage](assistant, "Write to one actor in private, or to a conversation. To an actor with which there is an encrypted one nothing is sent in the open."),
	"CreateConversation":  sealedWord[createConversation](people, "Begin a conversation: with another actor, in the open, or out of a new MLS group of the device's; that encrypts the conversation of two that upgrades names, or continues the closed one that predecessor names."),
	"AddMembers":          sealedWord[addMembers](people, "Add devices to an encrypted conversation by a commit, which may remove others. It needs an Idempotency-Key."),
	"RemoveMember":        sealedWord[removeMember](people, "Remove devices from an encrypted conversation by a commit. It needs an Idempotency-Key."),
	"LeaveConversation":   sealedWord[leaveConversation](people, "Ask the members of an encrypted conversation to remove the user, by an MLS proposal."),
	"Like":                word[like](assistant, "Like an object."),
	"Unlike":              word[unlike](assistant, "Take a Like back."),
	"Dislike":             word[dislike](assistant, "Dislike an article, audio, video or product. It takes the place of a Like, and a Like of it."),
	"UndoDislike":         word[undoDislike](assistant, "Take a Dislike back."),
	"Boost":               word[boost](assistant, "Pass a public object on to followers."),
	"Unboost":             word[unboost](assistant, "Take a boost back."),
	"UpdateObject":        word[updateObject](people, "Change an object of one's own."),
	"RevokeQuote":         word[revokeQuote](people, "Take back that an object may quote one of the user's. Its author is told, and is not let quote that again."),
	"DeleteObject":        word[deleteObject](people, "Delete an object of one's own."),
	"Block":               word[block](people, "Shut an actor out: the follows and friendships between it and the user end, and nothing of it comes in any more."),
	"Unblock":             word[unblock](people, "Take a Block back. Follows and friendships that it ended stay ended."),
	"CreateGroup":         word[createGroup](people, "Make a group: a set of actors to be addressed together. There are up to 100."),
	"DeleteGroup":         word[deleteGroup](people, "Delete a group. Whatever was written to it stays with those who have it."),
	"AddToGroup":          word[addToGroup](people, "Put an actor into a group, of up to 500. It is not told."),
	"RemoveFromGroup":     word[removeFromGroup](people, "Take an actor out of a group."),
	"MarkRead":            localWord[markRead](people, "Say up to which item the user has read a feed, or how far a conversation. The mark does not go back. No activity is made of it."),
	"SendFriendRequest":   word[sendFriendRequest](people, "Ask an actor to be friends."),
	"AcceptFriendRequest": word[acceptFriendRequest](people, "Be friends with an actor that asks for it."),
	"RejectFriendRequest": word[rejectFriendRequest](people, "Refuse to be friends with an actor that asks for it. It may ask again."),
	"RemoveRelationship":  word[removeRelationship](people, "End a follow of the user's, or a friendship, whoever asked for it; a request that waits is taken back, or refused."),
	"UpdateProfile":       word[updateProfile](people, "Change what others see of the user. Absent parameters stay as they are."),
}

// Actions returns the names of all actions, sorted.
func Actions() []string { return slices.Sorted(maps.Keys(vocabulary)) }

// RequiredScopes returns the scopes that allow the action. The token needs one of these scopes.
func RequiredScopes(name string) []string { return vocabulary[name].scopes }

// badParam refuses a parameter.
func badParam(name, words string) *fault.Error {
	return fault.New(fault.Unprocessable, words).WithCode("invalid_parameter").At("/params/" + name)
}

// readParams decodes and checks the parameters of an action. It refuses unknown names; the case
// of a name matters.
func readParams[T any, P interface {
	*T
	params
}](raw json.RawMessage) (params, error) {
	p := P(new(T))
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if err := readObject(raw, p, ""); err != nil {
			return nil, err
		}
	}
	return p, p.checkParams()
}

// readObject decodes the parameters into a struct. If place is not empty, it decodes the object
// at that place in the parameters.
func readObject(raw json.RawMessage, into any, place string) error {
	at, what := "/params", "params"
	if place != "" {
		at, what, place = at+"/"+place, place, place+"/"
	}
	wrong := fault.New(fault.Unprocessable, what+" must be an object").WithCode("invalid_parameter").At(at)
	given, err := vocab.ParseDoc(raw)
	if err != nil {
		return wrong
	}
	t := reflect.TypeOf(into).Elem()
	if err := checkNames(given, t, place); err != nil {
		return err
	}
	if err := checkTexts(given, t, place); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			name := mismatch.Field[strings.LastIndexByte(mismatch.Field, '.')+1:] // without the names of the enclosing structs
			return badParam(place+name, fmt.Sprintf("%s must not be a JSON %s", name, mismatch.Value))
		}
		return wrong
	}
	return nil
}

// checkNames refuses parameters for which t has no field. The case of a name matters here, but
// encoding/json would ignore it.
func checkNames(given vocab.Doc, t reflect.Type, place string) error {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		if name := paramName(f); name != "" {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !names[name] {
			return badParam(place+escapePointer(name), fmt.Sprintf("there is no parameter %.60q", name))
		}
	}
	return nil
}

// checkTexts refuses texts that are longer than their form allows, and texts that should be URIs
// but are not. An empty text counts as absent, and checkParams refuses it if the action needs
// it.
func checkTexts(given vocab.Doc, t reflect.Type, place string) error {
	for _, f := range reflect.VisibleFields(t) {
		name, form := paramName(f), paramForm(f)
		text := given.Text(name)
		if most, bounded := form["maxLength"].(int); bounded && utf8.RuneCountInString(text) > most {
			return badParam(place+name, fmt.Sprintf("%s has more than %d characters", name, most))
		}
		if form["format"] == "uri" && text != "" {
			if _, err := parseIdentifier(place+name, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// escapePointer escapes a name for a JSON Pointer (RFC 6901 §3).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(strings.ToValidUTF8(name[:min(len(name), 60)], ""))
}

// parseIdentifier parses a parameter that is an id.
func parseIdentifier(name, value string) (vocab.ID, error) {
	if value == "" {
		return "", badParam(name, name+" is missing")
	}
	id, err := vocab.ParseID(value)
	if err != nil {
		return "", badParam(name, name+" must be an https URI")
	}
	return id, nil
}
