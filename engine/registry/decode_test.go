package registry

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/fault"
)

func TestMistakesInThePolicyAreNamedWithTheirPlace(t *testing.T) {
	tests := []struct {
		name, file, want string // want is "" if the file is accepted
	}{
		{"all of it", `{"blocked_domains":["a.example"],"allowed_domains":[]}`, ""},
		{"nothing in it", `{}`, ""},
		{"a key misspelt", "{\n  \"blocked_domain\": []\n}", `line 2 column 18: unknown key "blocked_domain", did you mean "blocked_domains"?`},
		{"a key in capitals", `{"Blocked_Domains":[]}`, `did you mean "blocked_domains"?`},
		{"a key of something else", `{"users":[]}`, `unknown key "users"; known are allowed_domains, blocked_domains`},
		{"a key twice", `{"blocked_domains":[],"blocked_domains":[]}`, `key "blocked_domains" is there twice`},
		{"null", `{"blocked_domains":null}`, `blocked_domains must be a list`},
		{"a number for a domain", `{"blocked_domains":["a.example",7]}`, `blocked_domains[1] must be a text`},
		{"a list for the file", `[]`, `line 1 column 1: the file must be an object`},
		{"a comma too many", "{\"blocked_domains\":[\n\"a.example\",\n]}", `line 3 column 1: invalid character ']'`},
		{"the end missing", `{"blocked_domains":["a.example"]`, `ends too early`},
		{"text after the end", `{} {}`, `text after the end`},
		{"an address", `{"blocked_domains":["https://a.example"]}`, `blocked_domains[0]: "https://a.example" is not a domain`},
		{"a pattern", `{"blocked_domains":["*.a.example"]}`, `"*.a.example" is not a domain`},
		{"an account", `{"allowed_domains":["@a@a.example"]}`, `allowed_domains[0]: "@a@a.example" is not a domain`},
		{"an empty domain", `{"blocked_domains":[""]}`, `"" is not a domain`},
		{"a trailing dot", `{"blocked_domains":["a.example."]}`, `"a.example." is not a domain`},
		{"a space", `{"blocked_domains":["a .example"]}`, `"a .example" is not a domain`},
		{"far too long", `{"blocked_domains":["` + strings.Repeat("a.", 200) + `example"]}`, `is not a domain`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := decodeServer([]byte(tt.file))
			check(t, err, tt.want)
		})
	}
}

func TestMistakesInAUsersConfigurationAreNamedWithTheirPlace(t *testing.T) {
	tests := []struct {
		name, file, want string
	}{
		{"a part of it", `{"profile":{"name":"Alice"},"discoverable":true}`, ""},
		{"a key misspelt inside", `{"profile":{"nmae":"Alice"}}`, `unknown key "profile.nmae", did you mean "name"?`},
		{"a key misspelt in a list", `{"profile":{"fields":[{"name":"a","valeu":"b"}]}}`, `unknown key "profile.fields[0].valeu", did you mean "value"?`},
		{"a text for a truth", `{"messaging":{"allow_insecure_dm":"yes"}}`, `messaging.allow_insecure_dm must be true or false`},
		{"an unknown quote policy", `{"quotes":"friends"}`, `quotes: "friends" is none of anyone, followers and nobody`},
		{"an unknown follow policy", `{"follow_policy":"manual"}`, `follow_policy: "manual" is neither auto_accept nor approval_required`},
		{"an unknown visibility", `{"collections":{"following":"private"}}`, `collections.following: "private" is neither public nor owner`},
		{"an icon that is no address", `{"profile":{"icon":"a.png"}}`, `profile.icon: "a.png" is not the address of a picture`},
		{"a name too long", `{"profile":{"name":"` + strings.Repeat("ä", 101) + `"}}`, `profile.name has 101 characters: 0 to 100 are taken`},
		{"a terminal's escape in the name", `{"profile":{"name":"\u001b[31mred"}}`, `profile.name holds a control character`},
		{"lines in the summary", `{"profile":{"summary":"a\nb"}}`, ""},
		{"a field without a name", `{"profile":{"fields":[{"value":"b"}]}}`, `profile.fields[0].name has 0 characters`},
		{"too many fields", `{"profile":{"fields":[` + strings.Repeat(`{"name":"a"},`, 16) + `{"name":"a"}]}}`, `profile.fields has 17 fields`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := decodeUser([]byte(tt.file))
			check(t, err, tt.want)
		})
	}
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v, want it taken", err)
	case want != "" && (fault.KindOf(err) != fault.Config || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want fault.Config with %q", err, want)
	}
}

func TestNearestIsWhatWasMeant(t *testing.T) {
	names := []string{"data_dir", "listen", "admin_listen", "tls.key"}
	for word, want := range map[string]string{"lisen": "listen", "LISTEN": "listen", "data_dri": "data_dir", "admn_listen": "admin_listen", "public": "", "x": "", "": ""} {
		if got := Nearest(word, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
