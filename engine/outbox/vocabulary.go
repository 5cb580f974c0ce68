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

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/db/instance"
	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// intent is what an action wants, with its parameters.
type intent interface {
	// checkParams refuses parameters that are wrong beyond their types.
	checkParams() error
	// findRecipients finds what the action is about and sets the addressing.
	findRecipients(ctx context.Context, f *finder, x *exchange) error
	// constructObject returns the activity's type and object, and what its deliveries are ordered
	// by.
	constructObject(local *actor.Local, x *exchange) (kind string, object any)
	// lockName names what two dispatches must not change at once; empty when there is no such
	// thing.
	lockName() string
	// findEarlier returns, with the lock held, the activity that did the same before, empty when
	// there is something left to do. The fault says why it cannot be done any more.
	findEarlier(ctx context.Context, tx *db.Tx, x *exchange) (vocab.ID, error)
}

var (
	people    = []string{instance.ScopeWrite, instance.ScopeAdmin}
	assistant = []string{instance.ScopeWrite, instance.ScopeAdmin, instance.ScopeLLM} // what an LLM engine may do in the user's name, too
)

// action is a word of the vocabulary.
type action struct {
	read   func(json.RawMessage) (intent, error)
	scopes []string // any of which is enough
}

// vocabulary is everything that can be dispatched. It is closed: a security border.
var vocabulary = map[string]action{
	"Follow":          {readParams[follow], people},
	"Unfollow":        {readParams[unfollow], people},
	"AcceptFollow":    {readParams[acceptFollow], people},
	"RejectFollow":    {readParams[rejectFollow], people},
	"AcceptRequest":   {readParams[acceptRequest], people},
	"DeclineRequest":  {readParams[declineRequest], people},
	"CreateNote":      {readParams[createNote], assistant},
	"Reply":           {readParams[reply], assistant},
	"SendMessage":     {readParams[sendMessage], assistant},
	"Like":            {readParams[like], assistant},
	"Unlike":          {readParams[unlike], assistant},
	"Dislike":         {readParams[dislike], assistant},
	"UndoDislike":     {readParams[undoDislike], assistant},
	"Boost":           {readParams[boost], assistant},
	"Unboost":         {readParams[unboost], assistant},
	"UpdateObject":    {readParams[updateObject], people},
	"DeleteObject":    {readParams[deleteObject], people},
	"Block":           {readParams[block], people},
	"Unblock":         {readParams[unblock], people},
	"CreateGroup":     {readParams[createGroup], people},
	"DeleteGroup":     {readParams[deleteGroup], people},
	"AddToGroup":      {readParams[addToGroup], people},
	"RemoveFromGroup": {readParams[removeFromGroup], people},
}

// Actions returns the names of all actions, in order.
func Actions() []string { return slices.Sorted(maps.Keys(vocabulary)) }

// RequiredScopes returns the scopes of which one is needed to dispatch the action. That an action
// does not exist may be learnt by whoever may dispatch any.
func RequiredScopes(name string) []string {
	if a, ok := vocabulary[name]; ok {
		return a.scopes
	}
	return assistant
}

// MayDispatch reports whether a token with these scopes may dispatch the action.
func (o *Outbox) MayDispatch(scopes []string, name string) bool {
	return slices.ContainsFunc(RequiredScopes(name), func(s string) bool { return slices.Contains(scopes, s) })
}

// badParam is a parameter that cannot be taken.
func badParam(name, words string) *fault.Error {
	return fault.New(fault.Unprocessable, words).WithCode("invalid_parameter").At("/params/" + name)
}

// readParams reads the parameters of an action. Names are exact, and there are no others.
func readParams[T any, P interface {
	*T
	intent
}](raw json.RawMessage) (intent, error) {
	p := P(new(T))
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		if err := readObject(raw, p, ""); err != nil {
			return nil, err
		}
	}
	return p, p.checkParams()
}

// readObject reads the parameters, or the object in a place among them, into a struct.
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
	if err := checkNames(given, reflect.TypeOf(into).Elem(), place); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) {
			return badParam(place+mismatch.Field, fmt.Sprintf("%s must not be a JSON %s", mismatch.Field, mismatch.Value))
		}
		return wrong
	}
	return nil
}

// checkNames refuses parameters that t has no field for. encoding/json would take a name in any
// mixture of cases.
func checkNames(given vocab.Doc, t reflect.Type, place string) error {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" {
			names[tag] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !names[name] {
			return badParam(place+escapePointer(name), fmt.Sprintf("there is no parameter %.60q", name))
		}
	}
	return nil
}

// escapePointer escapes a name for a JSON Pointer (RFC 6901 §3).
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(strings.ToValidUTF8(name[:min(len(name), 60)], ""))
}

// parseIdentifier reads a parameter that is an id.
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
