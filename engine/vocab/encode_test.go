package vocab

import (
	"encoding/json"
	"strings"
	"testing"
)

// Marshal writes every document as encoding/json does.
func FuzzJSON(f *testing.F) {
	addHabits(f)
	f.Add([]byte(`{"a\u2028\"\\/\n\t\b\f\u0001\u007f":["é€𝄞",1.50,-0,1e3,true,false,null,{},[],{"b":{"a":""}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if d, err := ParseDoc(raw); err == nil {
			checkWritten(t, d)
		}
		checkWritten(t, Doc{string(raw): string(raw)})
	})
}

func checkWritten(t *testing.T, d Doc) {
	t.Helper()
	want, err := Marshal(map[string]any(d))
	if got := d.JSON(); err != nil || string(got) != string(want) {
		t.Errorf("JSON =\n%s, want\n%s, %v", got, want, err)
	}
}

func TestJSONWritesWhatTheEngineItselfMakes(t *testing.T) {
	checkWritten(t, Doc{"to": []string{"a", "b"}, "n": json.Number("7"), "i": 7, "none": Doc(nil), "empty": []any(nil), "id": ID("x")})
	checkWritten(t, Doc{strings.Repeat("x", 70): "\xff\x00\u2029", "b": "", "a": "<&>"})
}
