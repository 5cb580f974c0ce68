package vocab

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lightweb/lightweb/engine/fault"
)

// Canonical returns the document in the canonical form of RFC 8785 (JCS), which proofs cover. It
// refuses numbers beyond the range of a double, and integers that a double does not represent
// exactly (RFC 7493 §2.2), because different documents with such numbers could have the same form.
func (d Doc) Canonical() ([]byte, error) {
	err := checkDoubles(d)
	v := jsontext.Value(d.JSON())
	if err == nil {
		err = v.Canonicalize()
	}
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "the document has no canonical form", err)
	}
	return v, nil
}

func checkDoubles(v any) error {
	switch v := v.(type) {
	case Doc:
		for _, part := range v {
			if err := checkDoubles(part); err != nil {
				return err
			}
		}
	case []any:
		for _, part := range v {
			if err := checkDoubles(part); err != nil {
				return err
			}
		}
	case json.Number:
		f, err := v.Float64()
		if err == nil && math.Abs(f) > maxCount && !strings.ContainsAny(string(v), ".eE") && strconv.FormatFloat(f, 'f', -1, 64) != string(v) {
			err = errors.New("an integer has no double of its own") // several integers have the same double
		}
		return err
	}
	return nil
}
