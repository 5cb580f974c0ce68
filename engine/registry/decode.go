package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// decodeStrictly decodes data into v, a pointer to a struct. Unlike encoding/json it refuses
// unknown keys, keys that differ in capitals, repeated keys, null and trailing text. The error
// names the line and column, for the person who wrote the file.
func decodeStrictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	w := &walker{data: data, d: d}
	if err := w.checkValue(reflect.TypeOf(v).Elem(), ""); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return w.problemAt("text after the end")
	}
	if err := json.Unmarshal(data, v); err != nil {
		return w.syntaxProblem(err)
	}
	return nil
}

// walker checks that a document has the form of a Go type.
type walker struct {
	data []byte
	d    *json.Decoder
}

func (w *walker) checkValue(t reflect.Type, path string) error {
	token, err := w.d.Token()
	if err != nil {
		return w.syntaxProblem(err)
	}
	want, ok := "", false
	switch t.Kind() {
	case reflect.Struct:
		if token == json.Delim('{') {
			return w.checkObject(t, path)
		}
		want = "an object"
	case reflect.Map:
		if token == json.Delim('{') {
			return w.checkEntries(t.Elem(), path)
		}
		want = "an object"
	case reflect.Slice:
		if token == json.Delim('[') {
			return w.checkArray(t.Elem(), path)
		}
		want = "a list"
	case reflect.Bool:
		want = "true or false"
		_, ok = token.(bool)
	case reflect.String:
		want = "a text"
		_, ok = token.(string)
	}
	if !ok {
		return w.problemAt("%s must be %s", cmp.Or(path, "the file"), want)
	}
	return nil
}

func (w *walker) checkObject(t reflect.Type, path string) error {
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Type
		}
	}
	return w.checkMembers(path, func(key string) (reflect.Type, error) {
		if field, known := fields[key]; known {
			return field, nil
		}
		return nil, w.problemAt("unknown key %.60q%s", strings.TrimPrefix(path+"."+key, "."), suggestKey(key, fields))
	})
}

// checkEntries checks the values of an object that may have any keys.
func (w *walker) checkEntries(element reflect.Type, path string) error {
	return w.checkMembers(path, func(string) (reflect.Type, error) { return element, nil })
}

func (w *walker) checkMembers(path string, typeOf func(key string) (reflect.Type, error)) error {
	seen := map[string]bool{}
	for w.d.More() {
		token, err := w.d.Token()
		if err != nil {
			return w.syntaxProblem(err)
		}
		key, _ := token.(string) // the decoder accepts only strings as keys
		full := strings.TrimPrefix(path+"."+key, ".")
		field, err := typeOf(key)
		if err != nil {
			return err
		}
		if seen[key] {
			return w.problemAt("key %.100q is there twice", full)
		}
		seen[key] = true
		if err := w.checkValue(field, full); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return w.syntaxProblem(err)
}

func (w *walker) checkArray(element reflect.Type, path string) error {
	for i := 0; w.d.More(); i++ {
		if err := w.checkValue(element, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	_, err := w.d.Token()
	return w.syntaxProblem(err)
}

func suggestKey(key string, fields map[string]reflect.Type) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	if near := Nearest(key, names); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return "; known are " + strings.Join(names, ", ")
}

// problemAt returns an error with the line and column that the decoder has reached.
func (w *walker) problemAt(format string, args ...any) error {
	return badConfig("%s: %s", w.placeOf(w.d.InputOffset()), fmt.Sprintf(format, args...))
}

func (w *walker) syntaxProblem(err error) error {
	if err == nil {
		return nil
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return badConfig("%s: %s", w.placeOf(s.Offset), s.Error())
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return badConfig("%s: the file ends too early", w.placeOf(int64(len(w.data))))
	}
	return badConfig("%s: %s", w.placeOf(w.d.InputOffset()), err.Error())
}

func (w *walker) placeOf(offset int64) string {
	before := w.data[:min(int(offset), len(w.data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return fmt.Sprintf("line %d column %d", line, max(column, 1))
}

// Nearest returns the name that is most similar to word, which may be a misspelling of it. It
// returns "" if no name is similar enough.
func Nearest(word string, names []string) string {
	best, distance := "", min(max(2, len(word)/3), len(word)-1)+1
	if len(word) > 100 { // too long for a misspelling
		return ""
	}
	for _, n := range names {
		if d := countEdits(strings.ToLower(word), strings.ToLower(n)); d < distance {
			best, distance = n, d
		}
	}
	return best
}

// countEdits returns the least number of edits that turn a into b. An edit adds, removes or
// replaces a byte, or swaps two neighbours (optimal string alignment).
func countEdits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
