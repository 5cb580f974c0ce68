package vocab

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/lightweb/lightweb/engine/fault"
)

const maxPointer = 100 // bytes of a pointer to a refused member

// ParseInto reads an object that ParseDoc takes into a struct. Its members have the names of the
// struct's fields, letter by letter, and there are no others.
func ParseInto(b []byte, into any) error {
	if _, err := ParseDoc(b); err != nil {
		return err
	}
	err := json.Unmarshal(b, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	wrong := fault.Wrap(fault.Unprocessable, "the body has an unknown member, or one of another type; messages of MLS are base64 with padding", err).WithCode("invalid_parameter")
	if at := new(json.SemanticError); errors.As(err, &at) {
		wrong = wrong.At(shortPointer(string(at.JSONPointer)))
	}
	return wrong
}

// shortPointer bounds a pointer to a member that a stranger named.
func shortPointer(p string) string {
	return strings.TrimSuffix(strings.ToValidUTF8(p[:min(len(p), maxPointer)], ""), "~")
}
