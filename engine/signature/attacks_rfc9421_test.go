package signature

import (
	"crypto"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAttacksOnRFC9421(t *testing.T) {
	with := func(components string) string { return "(" + components + ")" + rfcTail }
	params := func(s string) string {
		return `("@method" "@target-uri" "content-digest");keyid="` + keyID + `"` + s
	}
	input := func(s string) func(*http.Request) { return set("Signature-Input", s) }
	ago := func(d time.Duration) string { return strconv.FormatInt(now.Add(-d).Unix(), 10) }
	tests := []probe{
		{name: "MS-02", sign: rfcGood},
		{name: "MS-02 method not covered", sign: with(`"@target-uri" "content-digest"`), want: "method_not_covered"},
		{name: "MS-02 no created", sign: params(""), want: "no_created"},
		{name: "MS-02 no keyid", sign: `("@method" "@target-uri" "content-digest");created=$now`, want: "no_key_id"},
		{name: "MS-02 keyid of another type", sign: `("@method" "@target-uri" "content-digest");created=$now;keyid=abc`, want: "no_key_id"},
		{name: "SIG-21 only path", sign: with(`"@path"`), want: "method_not_covered"},
		{name: "SIG-21 path without authority", sign: with(`"@method" "@path" "content-digest"`), want: "target_not_covered"},
		{name: "SIG-21 authority and path", sign: with(`"@method" "@authority" "@path" "content-digest"`)},
		{name: "SIG-21 authority and path, but not the query", target: "/inbox?a=b", sign: with(`"@method" "@authority" "@path" "content-digest"`), want: "target_not_covered"},
		{name: "SIG-21 authority, path and query", target: "/inbox?a=b", sign: with(`"@method" "@authority" "@path" "@query" "content-digest"`)},
		{name: "MS-03 authority and request-target", target: "/inbox?a=b", sign: with(`"@method" "@authority" "@request-target" "content-digest"`)},
		{name: "MS-03 all that is understood", target: "/inbox?", sign: with(`"@method" "@target-uri" "@authority" "@scheme" "@path" "@query" "@request-target" "host" "date" "content-type" "content-digest"`)},
		{name: "MS-03 SIG-21 status", sign: with(`"@method" "@target-uri" "content-digest" "@status"`), want: "unknown_component"},
		{name: "MS-03 SIG-21 query-param", sign: with(`"@method" "@target-uri" "content-digest" "@query-param";name="a"`), want: "component_parameter"},
		{name: "MS-03 SIG-21 signature-params", sign: with(`"@method" "@target-uri" "content-digest" "@signature-params"`), want: "unknown_component"},
		{name: "MS-03 SIG-21 req", sign: with(`"@method";req "@target-uri" "content-digest"`), want: "component_parameter"},
		{name: "MS-03 SIG-21 sf", sign: with(`"@method" "@target-uri" "content-digest";sf`), want: "component_parameter"},
		{name: "MS-03 SIG-21 bs", sign: with(`"@method" "@target-uri" "content-digest";bs`), want: "component_parameter"},
		{name: "MS-03 SIG-21 duplicate", sign: with(`"@method" "@target-uri" "content-digest" "@method"`), want: "duplicate_component"},
		{name: "MS-03 upper case", sign: with(`"@method" "@target-uri" "Content-Digest"`), want: "malformed_signature"},
		{name: "MS-03 empty name", sign: with(`"@method" "@target-uri" "content-digest" ""`), want: "malformed_signature"},
		{name: "MS-03 a name with a line break", sign: with(`"@method" "@target-uri" "content-digest" "a: b"`), want: "malformed_signature"},
		{name: "MS-03 components that are no strings", sign: with(`@method`), want: "malformed_signature_input"},
		{name: "MS-03 components that are tokens", sign: with(`method`), want: "malformed_signature"},
		{name: "MS-03 missing field", sign: with(`"@method" "@target-uri" "content-digest" "x-none"`), want: "missing_component"},
		{name: "several lines of one field", sign: with(`"@method" "@target-uri" "content-digest" "x-many"`), before: func(r *http.Request) {
			r.Header["X-Many"] = []string{" a ", "", "b"}
		}, after: func(r *http.Request) { r.Header["X-Many"] = []string{"a, , b"} }},
		{name: "a folded field", sign: with(`"@method" "@target-uri" "content-digest" "x-fold"`), before: set("X-Fold", "a \r\n\t b"), after: set("X-Fold", "a b")},
		{name: "a line break within a field", sign: with(`"@method" "@target-uri" "content-digest" "x-break"`), before: set("X-Break", "a\n\"@method\": POST"), want: "malformed_field"},

		{name: "SIG-14 SG-07 an hour ago", sign: params(";created=" + ago(time.Hour))},
		{name: "SIG-14 SG-07 in an hour", sign: params(";created=" + ago(-time.Hour))},
		{name: "SIG-14 61 minutes ago", sign: params(";created=" + ago(61*time.Minute)), want: "outside_window"},
		{name: "SIG-15 in 61 minutes", sign: params(";created=" + ago(-61*time.Minute)), want: "outside_window"},
		{name: "SIG-15 negative", sign: params(";created=-1"), want: "outside_window"},
		{name: "SIG-15 largest integer", sign: params(";created=999999999999999"), want: "outside_window"},
		{name: "SIG-15 2^63", sign: params(";created=9223372036854775808"), want: "malformed_signature_input"},
		{name: "SIG-15 fraction", sign: params(";created=$now.5"), want: "no_created"},
		{name: "SIG-15 string", sign: params(`;created="$now"`), want: "no_created"},
		{name: "SIG-15 date type", sign: params(";created=@$now"), want: "no_created"},
		{name: "SIG-15 expires before created", sign: params(";created=$now;expires=" + ago(time.Second)), want: "expires_before_created"},
		{name: "SIG-15 expired", sign: params(";created=" + ago(60*time.Second) + ";expires=" + ago(time.Second)), want: "expired"},
		{name: "SIG-15 expires as a fraction", sign: params(";created=$now;expires=$now.5"), want: "malformed_signature"},
		{name: "expires now", sign: params(";created=$now;expires=$now")},

		{name: "SIG-16 hmac-sha256", sign: rfcGood + `;alg="hmac-sha256"`, want: "unknown_algorithm"},
		{name: "SIG-16 none", sign: rfcGood + `;alg="none"`, want: "unknown_algorithm"},
		{name: "SIG-16 rsa-sha1", sign: rfcGood + `;alg="rsa-v1_5-sha1"`, want: "unknown_algorithm"},
		{name: "SIG-16 alg as a token", sign: rfcGood + `;alg=ed25519`, want: "unknown_algorithm"},
		{name: "SIG-16 MS-05 ed25519 and an RSA key", sign: rfcGood + `;alg="ed25519"`, want: "algorithm_mismatch"},
		{name: "SIG-16 MS-05 RSA and an Ed25519 key", key: edKey, sign: rfcGood + `;alg="rsa-v1_5-sha256"`, want: "algorithm_mismatch"},
		{name: "SIG-16 rsa-pss-sha512 over PKCS#1", sign: rfcGood + `;alg="rsa-pss-sha512"`, want: "bad_signature"},
		{name: "MS-05 rsa-v1_5-sha512", hash: crypto.SHA512, sign: rfcGood + `;alg="rsa-v1_5-sha512"`},
		{name: "MS-05 alg absent, Ed25519", key: edKey, sign: rfcGood},
		{name: "MS-08 tag and nonce", sign: rfcGood + `;tag="x";nonce="y";x=?1;y;z=:AA==:`},

		{name: "SIG-07 MS-09 digest covered but absent", sign: rfcGood, before: del("Content-Digest"), want: "no_digest"},
		{name: "MS-09 only unknown algorithms", sign: rfcGood, before: set("Content-Digest", "md5=:AAAA:, sha=:AAAA:"), want: "unknown_digest"},
		{name: "MS-09 one of two fits", sign: rfcGood, before: set("Content-Digest", "sha-256=:"+sum256(note)+":, sha-512=:"+strings.Repeat("A", 86)+"==:"), want: "digest_mismatch"},
		{name: "MS-09 sha-512", sign: rfcGood, before: func(r *http.Request) {
			h := sha512.Sum512([]byte(note))
			r.Header.Set("Content-Digest", "unknown=?1, sha-512=:"+base64.StdEncoding.EncodeToString(h[:])+":")
		}},
		{name: "MS-09 two lines", sign: rfcGood, before: add("Content-Digest", "x=:AAAA:")},
		{name: "MS-09 the same algorithm twice", sign: rfcGood, before: add("Content-Digest", "sha-256=:"+sum256("x")+":"), want: "duplicate_label"},
		{name: "MS-09 cut", sign: rfcGood, before: set("Content-Digest", "sha-256=:AAAA:"), want: "malformed_content_digest"},
		{name: "MS-09 a list", sign: rfcGood, before: set("Content-Digest", "sha-256=(:AAAA:)"), want: "malformed_content_digest"},
		{name: "MS-09 the form of draft-cavage", sign: rfcGood, before: set("Content-Digest", "SHA-256="+sum256(note)), want: "malformed_content_digest"},
		{name: "MS-10 content-digest absent and not covered", sign: with(`"@method" "@target-uri"`), before: del("Content-Digest"), want: "digest_not_covered"},

		{name: "SIG-13 MS-01 broken beside a good one of draft-cavage", dialect: Cavage, after: input("sig1=("), want: "malformed_signature_input"},
		{name: "SIG-13 MS-01 empty beside a good one of draft-cavage", dialect: Cavage, after: input(""), want: "malformed_signature"},
		{name: "SIG-19 100 kB", after: input(`sig1=("` + strings.Repeat("a", 100_000) + `")`), want: "header_too_large"},
		{name: "SIG-19 many parameters", sign: rfcGood + strings.Repeat(";a", 3000)},
		{name: "SIG-19 10,000 parameters", sign: rfcGood + strings.Repeat(";a", 10_000), want: "header_too_large"},
		{name: "SIG-19 many components", sign: with(strings.Repeat(`"a" `, 1500)), want: "duplicate_component"},
		{name: "SIG-19 line break", after: input("sig1=(\"@method\r\n\")"), want: "malformed_signature_input"},
		{name: "SIG-22 200 labels", after: func(r *http.Request) {
			r.Header.Set("Signature-Input", labels(200, "=()"))
			r.Header.Set("Signature", labels(200, "=:AA==:"))
		}, want: "too_many_signatures"},
		{name: "SIG-22 four labels", after: func(r *http.Request) {
			r.Header.Add("Signature-Input", labels(3, "=()"))
			r.Header.Add("Signature", labels(3, "=:AA==:"))
		}, want: "too_many_signatures"},
		{name: "MS-07 a good one after two that are not worth verifying", after: func(r *http.Request) {
			r.Header["Signature-Input"] = []string{"p1=(), p2=();alg=\"hmac-sha256\"", r.Header.Get("Signature-Input")}
			r.Header["Signature"] = []string{r.Header.Get("Signature"), "p1=:AA==:, p2=:AA==:"}
		}},
		{name: "SIG-23 other label", after: func(r *http.Request) {
			r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), "sig1", "sig2", 1))
		}, want: "label_mismatch"},
		{name: "SIG-23 a signature without input", after: add("Signature", "sig2=:AA==:"), want: "label_mismatch"},
		{name: "SIG-23 an input without signature", after: add("Signature-Input", `sig2=()`), want: "label_mismatch"},
		{name: "SIG-23 the same label twice", after: add("Signature-Input", `sig1=()`), want: "duplicate_label"},
		{name: "no signature field", after: del("Signature"), want: "label_mismatch"},
		{name: "a signature that is no byte sequence", after: set("Signature", `sig1="AA=="`), want: "malformed_signature"},
		{name: "an empty signature", after: set("Signature", `sig1=::`), want: "malformed_signature"},
		{name: "a signature that is a list", after: set("Signature", `sig1=(:AA==:)`), want: "malformed_signature"},
		{name: "an input that is no list", after: input(`sig1="@method"`), want: "malformed_signature"},
		{name: "a key id changed", after: func(r *http.Request) {
			r.Header.Set("Signature-Input", strings.Replace(r.Header.Get("Signature-Input"), "mallory", "carol", 1))
		}, want: "bad_signature"},
	}
	for _, p := range tests {
		if p.dialect == 0 {
			p.dialect = RFC9421
		}
		t.Run(p.name, func(t *testing.T) { t.Parallel(); p.run(t) })
	}
}

// labels returns n members of a dictionary. They have different labels and the same value.
func labels(n int, value string) string {
	members := make([]string, n)
	for i := range members {
		members[i] = "l" + strconv.Itoa(i) + value
	}
	return strings.Join(members, ", ")
}
