package vocab

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestParseDocRefuses(t *testing.T) {
	deep := func(open, end string, n int) string {
		return `{"a":` + strings.Repeat(open, n) + "1" + strings.Repeat(end, n) + "}"
	}
	tests := []struct{ name, doc string }{
		{"empty", ""},
		{"white space", " \n"},
		{"AS-08 array", `[{"type":"Note"}]`},
		{"AS-08 text", `"Note"`},
		{"AS-08 number", `42`},
		{"AS-08 null", `null`},
		{"AS-08 truth value", `true`},
		{"cut off", `{"type":"Note"`},
		{"PAR-02 arrays 65 deep", deep("[", "]", 64)},
		{"PAR-02 objects 65 deep", deep(`{"a":`, "}", 64)},
		{"PAR-02 arrays 100,000 deep, never closed", strings.Repeat("[", 100_000)},
		{"PAR-02 objects 100,000 deep, never closed", strings.Repeat(`{"a":`, 100_000)},
		{"PAR-03 1,000,000 empty objects", `{"a":[` + strings.Repeat("{},", 999_999) + `{}]}`},
		{"PAR-03 60,000 names", `{"a":[` + strings.Repeat(`{"b":1},`, 59_999) + `{"b":1}]}`},
		{"PAR-05 name twice", `{"actor":"https://a.example/","actor":"https://b.example/"}`},
		{"PAR-05 name twice, once in escapes", `{"id":"https://a.example/","\u0069d":"https://b.example/"}`},
		{"PAR-05 name twice, deeper", `{"object":{"id":"https://a.example/","id":"https://b.example/"}}`},
		{"PAR-06 invalid UTF-8", "{\"name\":\"\xff\"}"},
		{"PAR-06 overlong UTF-8", "{\"name\":\"\xc0\xaf\"}"},
		{"PAR-06 invalid UTF-8 in a name", "{\"\xff\":1}"},
		{"PAR-06 byte order mark", "\ufeff{}"},
		{"PAR-06 UTF-16", "\xff\xfe{\x00}\x00"},
		{"PAR-06 lone surrogate", `{"name":"\ud800"}`},
		{"PAR-06 surrogates in the wrong order", `{"name":"\udc00\ud800"}`},
		{"AS-09 NUL in a value", `{"name":"a\u0000b"}`},
		{"AS-09 NUL in a name", `{"a\u0000b":1}`},
		{"AS-09 NUL in a list", `{"to":["\u0000"]}`},
		{"raw control character", "{\"name\":\"a\nb\"}"},
		{"PAR-07 1e999", `{"n":1e999}`},
		{"PAR-07 1e-999", `{"n":1E-999}`},
		{"PAR-07 an exponent beyond an int", `{"n":1e+99999999999999999999}`},
		{"PAR-07 an exponent that makes an int negative", `{"n":1e-9223372036854775808}`},
		{"PAR-07 351 digits", `{"n":` + strings.Repeat("9", 351) + `}`},
		{"PAR-07 60 digits and an exponent", `{"n":` + strings.Repeat("9", 60) + `e308}`},
		{"PAR-07 100,000 numbers that are long when written out", `{"n":[` + strings.Repeat("1e300,", 99_999) + `1]}`},
		{"PAR-07 999e308", `{"n":999e308}`},
		{"PAR-07 17.9e308", `{"n":-17.9e308}`},
		{"PAR-07 320 digits", `{"n":` + strings.Repeat("9", 320) + `}`},
		{"PAR-07 30,000 digits", `{"n":` + strings.Repeat("9", 30_000) + `}`},
		{"PAR-07 leading zero", `{"n":01}`},
		{"PAR-07 leading plus", `{"n":+1}`},
		{"PAR-07 hexadecimal", `{"n":0x1}`},
		{"PAR-08 NaN", `{"n":NaN}`},
		{"PAR-08 garbage after it", `{} x`},
		{"PAR-08 a second document", `{}{}`},
		{"PAR-08 a closing brace more", `{}}`},
		{"PAR-08 NUL after it", "{}\x00"},
		{"PAR-08 comment", `{/* a */"b":1}`},
		{"PAR-08 comment after it", `{} // a`},
		{"PAR-08 comma at the end", `{"a":1,}`},
		{"PAR-08 single quotes", `{'a':1}`},
		{"PAR-12 XML", `<?xml version="1.0"?><XRD/>`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d, err := ParseDoc([]byte(tt.doc)); fault.KindOf(err) != fault.Invalid || d != nil {
				t.Errorf("ParseDoc = %d names, %v; want invalid", len(d), err)
			}
		})
	}
}

func TestParseDocTakes(t *testing.T) {
	tests := []struct {
		name, doc string
		want      Doc
	}{
		{"nothing in it", " {} \r\n", Doc{}},
		{"every kind of value", `{"a":null,"b":true,"c":false,"d":"x","e":[],"f":{}}`,
			Doc{"a": nil, "b": true, "c": false, "d": "x", "e": []any{}, "f": Doc{}}},
		{"PAR-02 64 deep", `{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, nil},
		{"PAR-05 names differ by case", `{"id":"a","ID":"b","Id":"c"}`, Doc{"id": "a", "ID": "b", "Id": "c"}},
		{"PAR-07 numbers keep their digits", `{"a":-0,"b":18446744073709551616,"c":1.50,"d":1e308,"e":-1E-308}`,
			Doc{"a": json.Number("-0"), "b": json.Number("18446744073709551616"), "c": json.Number("1.50"),
				"d": json.Number("1e308"), "e": json.Number("-1E-308")}},
		{"surrogate pairs and escapes", `{"n":"\ud83d\udc1d \u00e9\/\n"}`, Doc{"n": "🐝 é/\n"}},
		{"a long list of texts", `{"orderedItems":[` + strings.Repeat(`"https://peer.example/users/carol",`, 99_999) + `"x"]}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := ParseDoc([]byte(tt.doc))
			if err != nil || tt.want != nil && !reflect.DeepEqual(d, tt.want) {
				t.Fatalf("ParseDoc = %v, %v; want %v", d, err, tt.want)
			}
			back, err := ParseDoc(d.JSON())
			if err != nil || !reflect.DeepEqual(back, d) {
				t.Errorf("written and read again: %v, %v; want the same", back, err)
			}
		})
	}
}

// The error about a document is short. The engine may keep the error for long, and a stranger
// chooses the size of the document.
func TestTheErrorOfADocumentIsShort(t *testing.T) {
	name := `"` + strings.Repeat("\x7f", 1<<18) + `"`
	for _, doc := range []string{`{` + name + `:{"b":x}}`, `{` + name + `:1,` + name + `:2}`} {
		_, err := ParseDoc([]byte(doc))
		var syntax *jsontext.SyntacticError
		if fault.KindOf(err) != fault.Invalid || errors.As(err, &syntax) || len(fmt.Sprint(err)) > 1000 {
			t.Errorf("the error has %d characters and %v", len(fmt.Sprint(err)), syntax != nil)
		}
	}
}

// PAR-07: PostgreSQL writes a number such as 1e308 with all its digits. The engine must read that
// form, too.
func TestNumbersAreTakenAsTheyAreWrittenOut(t *testing.T) {
	for _, s := range []string{"1e308", "-1.7976931348623157e308", "2.2250738585072014e-308", "12345678901234567890e280", "-0.5E-7", "1e-308"} {
		if _, err := ParseDoc([]byte(`{"n":` + s + `}`)); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		n, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("%s is no number", s)
		}
		out := strings.TrimRight(n.FloatString(340), "0")
		if _, err := ParseDoc([]byte(`{"n":` + strings.TrimSuffix(out, ".") + `}`)); err != nil {
			t.Errorf("%s, written out: %v", s, err)
		}
	}
}

func TestMarshalIsCompactSortedAndUnescaped(t *testing.T) {
	b, err := Marshal(Doc{"b": "<p>&", "a": []any{json.Number("1.0"), nil}})
	if err != nil || string(b) != `{"a":[1.0,null],"b":"<p>&"}` {
		t.Errorf("Marshal = %s, %v", b, err)
	}
	if _, err := Marshal(Doc{"a": func() {}}); err == nil {
		t.Error("Marshal wrote what JSON cannot hold, want an error")
	}
}
