package vocab

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lightweb/lightweb/engine/fault"
)

// Bounds of a document from the network. Callers limit its size in bytes.
const (
	maxDepth    = 64     // of nested objects and arrays
	maxParts    = 50_000 // objects, arrays and named values, because each takes many times its length in memory
	maxNumber   = 350    // bytes of a number that is written without an exponent, as PostgreSQL returns it
	maxExponent = 308    // the exponent of the largest double
	maxWords    = 300    // bytes of the error of a document
	longNumber  = 32     // a number counts as one more part for every 32 bytes that it has without an exponent
)

// Doc is a JSON object as it was read: names are unchanged, and numbers keep their digits
// (json.Number).
type Doc map[string]any

// ParseDoc reads exactly one JSON object. It refuses duplicate names, invalid UTF-8, lone
// surrogates, NUL (which PostgreSQL cannot store), numbers beyond the range of a double or longer
// than maxNumber, nesting deeper than 64, more than maxParts parts, and text after the object.
func ParseDoc(b []byte) (Doc, error) {
	r := reader{Decoder: jsontext.NewDecoder(bytes.NewBuffer(b))}
	v, err := r.value(0)
	if err != nil {
		return nil, badJSON(err)
	}
	if _, err := r.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, badJSON(errors.New("words after the document"))
	}
	doc, ok := v.(Doc)
	if !ok {
		return nil, badJSON(errors.New("not an object"))
	}
	return doc, nil
}

// badJSON keeps only the first maxWords bytes of the text of err. The decoder's errors quote
// names of any length from the document, and callers keep errors in memory.
func badJSON(err error) error {
	words := err.Error()
	words = strings.ToValidUTF8(words[:min(len(words), maxWords)], "")
	return fault.Wrap(fault.Invalid, "the document is not acceptable JSON", errors.New(words)).WithCode("bad_json")
}

// reader reads one document, and counts its parts (see maxParts).
type reader struct {
	*jsontext.Decoder
	parts int
}

func (r *reader) value(depth int) (any, error) {
	t, err := r.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case '{':
		return r.object(depth + 1)
	case '[':
		return r.array(depth + 1)
	case '"':
		return checkText(t.String())
	case '0':
		return r.number(t.String())
	case 't', 'f':
		return t.Bool(), nil
	default:
		return nil, nil
	}
}

func (r *reader) object(depth int) (any, error) {
	if err := r.count(depth); err != nil {
		return nil, err
	}
	doc := Doc{}
	for r.PeekKind() != '}' {
		t, err := r.ReadToken()
		if err != nil {
			return nil, err
		}
		name, err := checkText(t.String())
		if err != nil {
			return nil, err
		}
		if err := r.count(depth); err != nil {
			return nil, err
		}
		if doc[name], err = r.value(depth); err != nil {
			return nil, err
		}
	}
	_, err := r.ReadToken()
	return doc, err
}

func (r *reader) array(depth int) (any, error) {
	if err := r.count(depth); err != nil {
		return nil, err
	}
	list := []any{}
	for r.PeekKind() != ']' {
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.ReadToken()
	return list, err
}

// count counts one more part. It returns an error if there are too many parts, or if depth is too
// large.
func (r *reader) count(depth int) error {
	if r.parts++; r.parts > maxParts {
		return errors.New("too many values")
	}
	if depth > maxDepth {
		return errors.New("nested too deep")
	}
	return nil
}

// number checks a number, and counts one part for every longNumber bytes that it has without an
// exponent. PostgreSQL returns numbers without an exponent, so a few bytes may become hundreds.
func (r *reader) number(s string) (json.Number, error) {
	out := len(s)
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e > maxExponent || e < -maxExponent {
			return "", errors.New("a number is beyond a double")
		}
		out += max(e, -e)
	}
	if out > maxNumber {
		return "", errors.New("a number is too long")
	}
	if _, err := strconv.ParseFloat(s, 64); err != nil {
		return "", errors.New("a number is beyond a double")
	}
	if r.parts += out / longNumber; r.parts > maxParts {
		return "", errors.New("too many values")
	}
	return json.Number(s), nil
}

func checkText(s string) (string, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return "", errors.New("a text holds NUL")
	}
	return s, nil
}
