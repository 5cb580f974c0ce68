package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestParseDomain(t *testing.T) {
	for _, tt := range []struct{ written, want string }{
		{"Evil.Example", "evil.example"},
		{" evil.example. ", "evil.example"},
		{"evil.example:8443", "evil.example"},
		{"böse.example", "xn--bse-sna.example"},
		{"alice.github.io", "alice.github.io"},
		// a public suffix may be refused, with all names below it
		{"github.io", "github.io"},
		{"192.0.2.7", "192.0.2.7"},
		{"[::ffff:192.0.2.7]:443", "192.0.2.7"},
		{"2001:DB8:0::1", "[2001:db8::1]"},
		{"", ""},
		{".", ""},
		{"com", ""},
		{"co.uk", ""},
		{"localhost", ""},
		{"*", ""},
		{"*.evil.example", ""},
		{"ev**.example", ""},
		{"https://evil.example/", ""},
		{"bob@evil.example", ""},
		{"10.0.0.0/8", ""},
		{"evil example", ""},
		{"=cmd|' /C calc'!A0", ""},
		{"-evil.example", ""},
		{strings.Repeat("a", 64) + ".example", ""},
		{strings.Repeat("a.", 127) + "example", ""},
	} {
		got, err := ParseDomain(tt.written)
		if got != tt.want || (err == nil) != (tt.want != "") || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("ParseDomain(%q) = %q, %v, want %q", tt.written, got, err, tt.want)
		}
	}
}

// read returns the rows of a list, one per line.
func read(t *testing.T, list string) string {
	t.Helper()
	rows, err := ReadBlocklist(strings.NewReader(list))
	if err != nil {
		t.Fatalf("ReadBlocklist(%q) = %v", list, err)
	}
	var out strings.Builder
	for _, r := range rows {
		domain := r.Domain
		if r.Err != nil {
			domain = "refused:" + r.Text
		}
		fmt.Fprintf(&out, "%d %s %s %s\n", r.Line, domain, r.Severity, r.Comment)
	}
	return out.String()
}

func TestReadBlocklist(t *testing.T) {
	for _, tt := range []struct{ name, list, want string }{
		{"Mastodon's columns", "#domain,#severity,#reject_media,#reject_reports,#public_comment,#obfuscate\n" +
			"evil.example,suspend,TRUE,TRUE,spam,FALSE\nloud.example,silence,FALSE,FALSE,,FALSE\nodd.example,noop,FALSE,FALSE,,FALSE\n",
			"2 evil.example suspend spam\n3 loud.example silence \n4 odd.example noop \n"},
		{"columns in another order, and more of them", "public_comment,Severity,note,Domain\nspam,SUSPEND,x,Evil.example\n", "2 evil.example suspend spam\n"},
		{"no severity is suspend", "domain\nevil.example\n", "2 evil.example suspend \n"},
		{"an unknown severity, or none", "domain,severity\nevil.example,limit\nwicked.example\n", "2 refused:evil.example limit \n3 refused:wicked.example  \n"},
		{"MOD-04 quotes and line ends in them", "#domain,#severity,#public_comment\n\"evil.example\",suspend,\"spam, \"\"and\nworse\"\"\"\nwicked.example,suspend,\n",
			"2 evil.example suspend spam, \"and worse\"\n4 wicked.example suspend \n"},
		{"MOD-04 BOM and CRLF", "\ufeff#domain,#severity\r\nevil.example,suspend\r\n\r\nwicked.example,suspend\r\n", "2 evil.example suspend \n4 wicked.example suspend \n"},
		{"MOD-04 formulas", "#domain,#severity,#public_comment\n=1+1,suspend,\nevil.example,suspend,'=HYPERLINK(1)\nwicked.example,suspend,=2\n",
			"2 refused:=1+1 suspend \n3 evil.example suspend =HYPERLINK(1)\n4 wicked.example suspend =2\n"},
		{"MOD-04 comments", "#domain,#severity\n# from a friend,\nevil.example,suspend\n", "3 evil.example suspend \n"},
		{"MOD-04 wildcard, empty domain, public suffix", "#domain,#severity\n*,suspend\n,suspend\ncom,suspend\n*.evil.example,suspend\n",
			"2 refused:* suspend \n3 refused: suspend \n4 refused:com suspend \n5 refused:*.evil.example suspend \n"},
		{"obfuscated", "#domain,#severity\nev**.example,suspend\n", "2 refused:ev**.example suspend \n"},
		{"controls in a comment", "#domain,#public_comment\nevil.example,\"a\tb\u001b[31mc\u0000\"\n", "2 evil.example suspend a b [31mc\n"},
		{"a domain a line", "# from a friend\n\nevil.example\r\n  wicked.example  # spam\n", "3 evil.example suspend \n4 wicked.example suspend spam\n"},
		{"a domain a line, with columns that nothing names", "evil.example,suspend\n", "1 refused:evil.example,suspend suspend \n"},
		{"a domain a line, with a quote", "evil.example\n\"wicked.example\n", "1 evil.example suspend \n2 refused:\"wicked.example suspend \n"},
		{"nothing", "\n\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := read(t, tt.list); got != tt.want {
				t.Errorf("rows are\n%s, want\n%s", got, tt.want)
			}
		})
	}
}

func TestReadBlocklistRefusesWhatIsNone(t *testing.T) {
	for _, tt := range []struct {
		name, list string
		want       fault.Kind
	}{
		{"an open quote", "#domain,#severity\n\"evil.example,suspend\n", fault.Invalid},
		{"UTF-16", "\xff\xfee\x00v\x00", fault.Invalid},
		{"MOD-04 too many lines", strings.Repeat("a.b\n", MaxBlocklistLines+1), fault.TooLarge},
		{"too large", strings.Repeat("\n", MaxBlocklist+1), fault.TooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if rows, err := ReadBlocklist(strings.NewReader(tt.list)); fault.KindOf(err) != tt.want {
				t.Errorf("ReadBlocklist = %d rows, %v, want kind %d", len(rows), err, tt.want)
			}
		})
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	rows := []Row{{Domain: "evil.example", Severity: Suspend, Comment: "spam, \"and\" worse"}, {Domain: "[2001:db8::1]", Severity: Suspend, Comment: "=1+1"},
		{Domain: "wicked.example", Severity: Suspend, Comment: "'quoted'"}}
	var csv strings.Builder
	if err := WriteBlocklist(&csv, rows); err != nil {
		t.Fatal(err)
	}
	if head, _, _ := strings.Cut(csv.String(), "\n"); head != "#domain,#severity,#reject_media,#reject_reports,#public_comment,#obfuscate" {
		t.Errorf("the first line is %q, want Mastodon's", head)
	}
	if strings.Contains(csv.String(), ",=") {
		t.Errorf("a spreadsheet would compute a comment of\n%s", csv.String())
	}
	back, err := ReadBlocklist(strings.NewReader(csv.String()))
	if err != nil || len(back) != len(rows) {
		t.Fatalf("%d rows are read back, %v, want %d", len(back), err, len(rows))
	}
	for i, r := range back {
		if r.Domain != rows[i].Domain || r.Severity != rows[i].Severity || r.Comment != rows[i].Comment || r.Err != nil {
			t.Errorf("row %+v is read back as %+v", rows[i], r)
		}
	}
}

func FuzzReadBlocklist(f *testing.F) {
	f.Add("#domain,#severity,#public_comment\nevil.example,suspend,'=1\n")
	f.Add("\ufeffevil.example # spam\r\n\"")
	f.Fuzz(func(t *testing.T, list string) {
		rows, err := ReadBlocklist(strings.NewReader(list))
		if err != nil && fault.Of(err) == nil {
			t.Fatalf("%v has no kind", err)
		}
		for _, r := range rows {
			if again, err := ParseDomain(r.Domain); r.Err == nil && (err != nil || again != r.Domain) {
				t.Fatalf("%q becomes %q, and that %q, %v", r.Text, r.Domain, again, err)
			}
			if strings.ContainsAny(r.Comment, "\r\n\x1b") {
				t.Fatalf("comment %q", r.Comment)
			}
			if strings.Contains(r.Text, "*") != errors.Is(r.Err, ErrObfuscated) {
				t.Fatalf("%q: %v", r.Text, r.Err)
			}
		}
	})
}
