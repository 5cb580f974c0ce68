package vocab

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/lightweb/lightweb/engine/fault"
)

const maxPointer = 100 // bytes of a pointer to a refused member

// ParseInto reads a JSON object into a struct. It refuses an object that ParseDoc refuses, and an
// object with a member whose name is not exactly the name of one of the struct's fields.
func ParseInto(b []byte, into any) error {
	if _, err := ParseDoc(b); err != nil {
		return err
	}
	err := json.Unmarshal(b, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	wrong := fault.Wrap(fault.Unprocessable, "the body has an unknown member, or one of another type; messages of MLS are base64 with padding", err).WithCode("invalid_parameter")
	if at, ok := errors.AsType[*json.SemanticError](err); ok {
		wrong = wrong.At(shortPointer(string(at.JSONPointer)))
	}
	return wrong
}

// shortPointer shortens a pointer to at most maxPointer bytes, because a stranger chose the names
// of the members in it.
func shortPointer(p string) string {
	return strings.TrimSuffix(strings.ToValidUTF8(p[:min(len(p), maxPointer)], ""), "~")
}
