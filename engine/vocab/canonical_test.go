package vocab

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightweb/lightweb/engine/fault"
)

func canonical(t testing.TB, raw string) string {
	t.Helper()
	d, err := ParseDoc([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return string(c)
}

func TestCanonicalForm(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"names in order, no spaces", ` { "b" : [ true , null ] , "a" : { "d":"", "c": false } } `, `{"a":{"c":false,"d":""},"b":[true,null]}`},
		{"SIG-35 names by UTF-16 code units, not by code points or bytes", `{"\ufb33":1,"\ud83d\ude02":2,"\u20ac":3,"\r":4,"1":5,"\u0080":6,"ö":7}`,
			"{\"\\r\":4,\"1\":5,\"\u0080\":6,\"ö\":7,\"€\":3,\"😂\":2,\"\ufb33\":1}"},
		{"SIG-35 escapes only where there must be", `{"a":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\b\f\t\u2028\u007f<&>"}`, "{\"a\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\\b\\f\\t\u2028\u007f<&>\"}"},
		{"letters that look alike stay apart", `{"A\u030a":1,"\u00c5":2}`, "{\"A\u030a\":1,\"Å\":2}"},
		{"SIG-35 minus zero", `{"a":[-0,-0.0,0e5]}`, `{"a":[0,0,0]}`},
		{"SIG-35 large and small", `{"a":[1e21,1E+20,1e-6,1e-7,100000000000000000000.0,1.7976931348623157e308]}`,
			`{"a":[1e+21,100000000000000000000,0.000001,1e-7,100000000000000000000,1.7976931348623157e+308]}`},
		{"shortest", `{"a":[4.50,2e-3,333333333.33333329,0.000000000000000000000000001,-71.184902,10.0,1E30]}`,
			`{"a":[4.5,0.002,333333333.3333333,1e-27,-71.184902,10,1e+30]}`},
		{"the largest integers", `{"a":[9007199254740991,-9007199254740991]}`, `{"a":[9007199254740991,-9007199254740991]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := canonical(t, tt.raw); got != tt.want {
				t.Errorf("%s\n is %s\nwant %s", tt.raw, got, tt.want)
			}
		})
	}
}

func TestLargeIntegersAreTheDoublesThatStandForThemselves(t *testing.T) {
	for n, want := range map[string]string{"9007199254740992": "9007199254740992", "189007099254740000000": "189007099254740000000", "0.189007099254740e21": "189007099254740000000", "1000000000000000000000": "1e+21"} {
		d, err := ParseDoc([]byte(`{"a":` + n + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if c, err := d.Canonical(); err != nil || string(c) != `{"a":`+want+`}` {
			t.Errorf("%s is %s, %v; want %s", n, c, err, want)
		}
	}
}

func TestDocumentsWithoutCanonicalForm(t *testing.T) {
	for _, n := range []string{"9007199254740993", "-9007199254740993", "12345678901234567890"} {
		d, err := ParseDoc([]byte(`{"a":[{"b":` + n + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if c, err := d.Canonical(); fault.KindOf(err) != fault.Invalid {
			t.Errorf("SIG-35: %s is %s, %v; want it refused", n, c, err)
		}
	}
}

// checkCanonical fails the test unless the canonical form of d can be read. The canonical form of
// that form must be the same.
func checkCanonical(t interface{ Fatalf(string, ...any) }, d Doc) {
	c, err := d.Canonical()
	if err != nil {
		if fault.KindOf(err) != fault.Invalid {
			t.Fatalf("Canonical: %v, want invalid", err)
		}
		return
	}
	back, err := ParseDoc(c)
	if err != nil || len(back) != len(d) {
		t.Fatalf("%s reads as %v, %v", c, back, err)
	}
	again, err := back.Canonical()
	if err != nil || !bytes.Equal(again, c) {
		t.Fatalf("the canonical form of %s is %s, %v", c, again, err)
	}
}

func FuzzCanonical(f *testing.F) {
	addHabits(f)
	for _, s := range []string{`{"\ud83d\ude02":-0,"\ufb33":1e21,"":{"a":[1.5e-7,0.1,9007199254740991]}}`, `{"a":1e308,"\u0061\u0301":"\u0000"}`, `{"a":"\ud800"}`, `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if d, err := ParseDoc(raw); err == nil {
			checkCanonical(t, d)
		}
	})
}

func TestCanonicalFormOfAnything(t *testing.T) {
	text := rapid.StringN(0, 8, -1)
	value := rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return rapid.Float64().Draw(t, "number")
		case 1:
			return []any{text.Draw(t, "text"), nil, rapid.Bool().Draw(t, "flag")}
		default:
			return text.Draw(t, "text")
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		d := Doc{}
		for name, v := range rapid.MapOf(text, value).Draw(t, "members") {
			d[name] = v
		}
		parsed, err := ParseDoc(d.JSON())
		if err != nil {
			t.Skip("it holds what is refused") // NUL and numbers with many zeros are refused
		}
		checkCanonical(t, parsed)
	})
}
