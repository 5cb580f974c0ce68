package vocab

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// Marshal returns v as compact JSON, without HTML escapes. The names in a map are sorted.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// JSON returns the document as JSON. It panics if the document holds a value that JSON cannot
// represent.
func (d Doc) JSON() json.RawMessage { return appendValue(make([]byte, 0, 1024), d) }

// appendValue appends a value of a document, in the form in which Marshal writes it. For the
// types that ParseDoc makes, except numbers, it needs no reflection.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return AppendText(b, v)
	case Doc:
		return appendDoc(b, v)
	case []any:
		return appendList(b, v)
	case bool:
		if v {
			return append(b, "true"...)
		}
		return append(b, "false"...)
	case nil:
		return append(b, "null"...)
	}
	other, err := Marshal(v)
	if err != nil {
		panic("vocab: a document holds what JSON cannot: " + err.Error())
	}
	return append(b, other...)
}

func appendDoc(b []byte, d Doc) []byte {
	if d == nil {
		return append(b, "null"...)
	}
	var room [32]string
	names := room[:0]
	for name := range d {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(b, '{')
	for n, name := range names {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(AppendText(b, name), ':')
		b = appendValue(b, d[name])
	}
	return append(b, '}')
}

func appendList(b []byte, list []any) []byte {
	if list == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for n, v := range list {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendValue(b, v)
	}
	return append(b, ']')
}

// escapes are the characters that have an escape of two characters.
var escapes = [utf8.RuneSelf]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// AppendText appends a text as a JSON string, in the form in which Marshal writes it.
func AppendText(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0 // where the part that is not appended yet begins
	for i := 0; i < len(s); {
		c, size := rune(s[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRuneInString(s[i:])
		}
		switch isBad := c == utf8.RuneError && size == 1; {
		case c < utf8.RuneSelf && escapes[c] != 0:
			b = append(append(b, s[from:i]...), '\\', escapes[c])
		case c < ' ', isBad, c == '\u2028', c == '\u2029': // these two end lines in JavaScript
			b = append(append(b, s[from:i]...), '\\', 'u', hex[c>>12], hex[c>>8&15], hex[c>>4&15], hex[c&15])
		default:
			i += size
			continue
		}
		i += size
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
