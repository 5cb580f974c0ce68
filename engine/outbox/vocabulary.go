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
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

// intent is what an action wants, with its parameters.
type intent interface {
	// check says what is wrong with the parameters beyond their types.
	check() error
	// resolve finds what the action is about and sets the addressing.
	resolve(ctx context.Context, o *Outbox, x *exchange) error
	// construct returns the activity's type and object, and what its deliveries are ordered by.
	construct(o *Outbox, x *exchange) (kind string, object any)
	// subject names what two dispatches must not change at once; empty when that is nothing.
	subject() string
	// settled looks, with the subject locked, whether there is anything left to do: it returns the activity that did it
	// before, or why it cannot be done any more.
	settled(ctx context.Context, tx *db.Tx, x *exchange) (vocab.ID, error)
}

var (
	people    = []string{db.ScopeWrite, db.ScopeAdmin}
	assistant = []string{db.ScopeWrite, db.ScopeAdmin, db.ScopeLLM} // what an LLM engine may do in the user's name, too
)

// action is a word of the vocabulary.
type action struct {
	read   func(json.RawMessage) (intent, error)
	scopes []string // any of which is enough
}

// vocabulary is everything that can be dispatched. It is closed: a security border.
var vocabulary = map[string]action{
	"Follow":          {params[follow], people},
	"Unfollow":        {params[unfollow], people},
	"AcceptFollow":    {params[acceptFollow], people},
	"RejectFollow":    {params[rejectFollow], people},
	"AcceptRequest":   {params[acceptRequest], people},
	"DeclineRequest":  {params[declineRequest], people},
	"CreateNote":      {params[createNote], assistant},
	"Reply":           {params[reply], assistant},
	"SendMessage":     {params[sendMessage], assistant},
	"Like":            {params[like], assistant},
	"Unlike":          {params[unlike], assistant},
	"Dislike":         {params[dislike], assistant},
	"UndoDislike":     {params[undoDislike], assistant},
	"Boost":           {params[boost], assistant},
	"Unboost":         {params[unboost], assistant},
	"UpdateObject":    {params[updateObject], people},
	"DeleteObject":    {params[deleteObject], people},
	"Block":           {params[block], people},
	"Unblock":         {params[unblock], people},
	"CreateGroup":     {params[createGroup], people},
	"DeleteGroup":     {params[deleteGroup], people},
	"AddToGroup":      {params[addToGroup], people},
	"RemoveFromGroup": {params[removeFromGroup], people},
}

// Actions returns the names of all actions, in order.
func Actions() []string { return slices.Sorted(maps.Keys(vocabulary)) }

// RequiredScopes returns the scopes of which one is needed to dispatch the action. That an action does not exist may be
// learnt by whoever may dispatch any.
func RequiredScopes(name string) []string {
	if a, ok := vocabulary[name]; ok {
		return a.scopes
	}
	return assistant
}

// Allows tells whether a token with these scopes may dispatch the action.
func (o *Outbox) Allows(scopes []string, name string) bool {
	return slices.ContainsFunc(RequiredScopes(name), func(s string) bool { return slices.Contains(scopes, s) })
}

// bad is a parameter that cannot be taken.
func bad(name, words string) *fault.Error {
	return fault.New(fault.Unprocessable, words).WithCode("invalid_parameter").At("/params/" + name)
}

// params reads the parameters of an action. Names are exact, and there are no others.
func params[T any, P interface {
	*T
	intent
}](raw json.RawMessage) (intent, error) {
	wrong := fault.New(fault.Unprocessable, "params must be an object").WithCode("invalid_parameter").At("/params")
	p := P(new(T))
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && !bytes.Equal(raw, []byte("null")) {
		given, err := vocab.ParseDoc(raw)
		if err != nil {
			return nil, wrong
		}
		if err := known(given, reflect.TypeFor[T]()); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, p); err != nil {
			var mismatch *json.UnmarshalTypeError
			if errors.As(err, &mismatch) {
				return nil, bad(mismatch.Field, fmt.Sprintf("%s must not be a JSON %s", mismatch.Field, mismatch.Value))
			}
			return nil, wrong
		}
	}
	return p, p.check()
}

// known refuses parameters that t has no field for. encoding/json would take a name in any mixture of cases.
func known(given vocab.Doc, t reflect.Type) error {
	names := map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" {
			names[tag] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !names[name] {
			return bad(pointer(name), fmt.Sprintf("there is no parameter %.60q", name))
		}
	}
	return nil
}

// pointer escapes a name for a JSON Pointer (RFC 6901 §3).
func pointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(strings.ToValidUTF8(name[:min(len(name), 60)], ""))
}

// identifier reads a parameter that is an id.
func identifier(name, value string) (vocab.ID, error) {
	if value == "" {
		return "", bad(name, name+" is missing")
	}
	id, err := vocab.ParseID(value)
	if err != nil {
		return "", bad(name, name+" must be an https URI")
	}
	return id, nil
}
