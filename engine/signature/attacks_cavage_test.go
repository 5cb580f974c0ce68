package signature

import (
	"crypto"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestAttacksOnCavage(t *testing.T) {
	algorithm := func(a string) string { return strings.Replace(cavGood, "rsa-sha256", a, 1) }
	header := func(s string) func(*http.Request) { return set("Signature", s) }
	hs := func(s string) string { return cavHS + s }
	dated := func(s string) probe { return probe{sign: cavGood, before: set("Date", s)} }
	two := func(p probe, name, want string) probe { p.name, p.want = name, want; return p }
	ago := func(d time.Duration) string { return strconv.FormatInt(now.Add(-d).Unix(), 10) }
	tests := []probe{
		{name: "SG-01", sign: cavGood},
		{name: "SG-02 any order, spaces, commas within values", sign: `headers="(request-target) host date digest" ,	x="a,b=c, d",  algorithm="hs2019", keyId="` + keyID + `"`},
		{name: "SG-02 names of headers in capitals", sign: cavHead + `(request-target) Host Date Digest"`},
		{name: "SG-02 in Authorization", after: func(r *http.Request) {
			r.Header.Set("Authorization", "signature "+r.Header.Get("Signature"))
			r.Header.Del("Signature")
		}, want: "authorization_signature"},
		{name: "SG-02 another in Authorization too, which is not read", after: set("Authorization", `Signature keyId="x"`)},
		{name: "SG-02 a good one in Authorization, a forged one beside it", after: func(r *http.Request) {
			r.Header.Set("Authorization", "Signature "+r.Header.Get("Signature"))
			r.Header.Set("Signature", strings.Replace(r.Header.Get("Signature"), `signature="`, `signature="AAAA`, 1))
		}, want: "bad_signature"},
		{name: "SG-02 a bearer token beside it", after: set("Authorization", "Bearer keyId=x")},
		{name: "SG-02 SIG-19 keyId twice", sign: cavGood + `,keyId="https://other.example/"`, want: "duplicate_parameter"},
		{name: "SG-02 an unknown parameter twice", sign: cavGood + `,x=1,x=1`, want: "duplicate_parameter"},
		{name: "SG-02 two lines", after: add("Signature", `keyId="x"`), want: "duplicate_header"},
		{name: "SG-03 algorithm absent", sign: strings.Replace(cavGood, `algorithm="rsa-sha256",`, "", 1)},
		{name: "SG-03 hs2019", sign: algorithm("hs2019")},
		{name: "SG-03 RSA-SHA512", hash: crypto.SHA512, sign: algorithm("rsa-sha512")},
		{name: "SG-03 RSA-SHA512 called hs2019", hash: crypto.SHA512, sign: algorithm("hs2019")},
		{name: "SG-03 Ed25519", key: edKey, sign: algorithm("ed25519")},
		{name: "SG-03 Ed25519 called hs2019", key: edKey, sign: algorithm("hs2019")},
		{name: "SG-03 SIG-16 hmac-sha256", sign: algorithm("hmac-sha256"), want: "unknown_algorithm"},
		{name: "SG-03 SIG-16 rsa-sha1", sign: algorithm("rsa-sha1"), want: "unknown_algorithm"},
		{name: "SG-03 SIG-16 none", sign: algorithm("none"), want: "unknown_algorithm"},
		{name: "SIG-16 ed25519 and an RSA key", sign: algorithm("ed25519"), want: "algorithm_mismatch"},
		{name: "SIG-16 rsa-sha256 and an Ed25519 key", key: edKey, sign: cavGood, want: "algorithm_mismatch"},
		{name: "SG-04 no headers", sign: `keyId="` + keyID + `",algorithm="hs2019"`, want: "target_not_covered"},
		{name: "SG-04 empty headers", sign: cavHead + `"`, want: "malformed_signature"},
		{name: "SG-05 host not covered", sign: cavHead + `(request-target) date digest"`, want: "host_not_covered"},
		{name: "SG-05 date not covered", sign: cavHead + `(request-target) host digest"`, want: "date_not_covered"},
		{name: "SG-05 GET without host", method: "GET", sign: cavHead + `(request-target) date"`, want: "host_not_covered"},
		{name: "duplicate component", sign: cavHead + `(request-target) host date digest host"`, want: "duplicate_component"},
		{name: "unknown pseudo-header", sign: cavHead + `(request-target) host date digest (foo)"`, want: "unknown_component"},
		{name: "component of RFC 9421", sign: cavHead + `(request-target) host date digest @method"`, want: "unknown_component"},
		{name: "missing field", sign: cavHead + `(request-target) host date digest x-none"`, want: "missing_component"},

		{name: "SG-06 created with hs2019", sign: hs(`,created=$now`)},
		{name: "SG-06 created in quotes", sign: hs(`,created="$now"`)},
		{name: "SG-06 SIG-15 created with rsa-sha256", sign: strings.Replace(cavHS, "hs2019", "rsa-sha256", 1) + `,created=$now`, want: "created_with_rsa"},
		{name: "SG-06 expires with rsa-sha512", sign: strings.Replace(cavGood, "rsa-sha256", "rsa-sha512", 1)[:len(cavGood)-1] + ` (expires)",expires=$now`, want: "created_with_rsa"},
		{name: "SG-07 created an hour ago", sign: hs(`,created=` + ago(time.Hour))},
		{name: "SG-07 created in an hour", sign: hs(`,created=` + ago(-time.Hour))},
		{name: "SIG-15 created 61 minutes ago", sign: hs(`,created=` + ago(61*time.Minute)), want: "outside_window"},
		{name: "SIG-15 created in 61 minutes", sign: hs(`,created=` + ago(-61*time.Minute)), want: "outside_window"},
		{name: "SIG-15 created missing", sign: cavHS, want: "bad_created"},
		{name: "SIG-15 created negative", sign: hs(`,created=-1`), want: "bad_created"},
		{name: "SIG-15 created with a sign", sign: hs(`,created=+$now`), want: "bad_created"},
		{name: "SIG-15 created 2^63", sign: hs(`,created=9223372036854775808`), want: "bad_created"},
		{name: "SIG-15 created 2^63-1", sign: hs(`,created=9223372036854775807`), want: "outside_window"},
		{name: "SIG-15 created a fraction", sign: hs(`,created=$now.5`), want: "bad_created"},
		{name: "SIG-15 expires before created", sign: hs(`,created=$now,expires=` + ago(time.Second)), want: "expires_before_created"},
		{name: "SIG-15 expired", sign: hs(`,created=` + ago(60*time.Second) + `,expires=` + ago(time.Second)), want: "expired"},
		{name: "SIG-15 expired, with a date", sign: cavGood + `,expires=` + ago(time.Second), want: "expired"},
		{name: "SIG-15 expires malformed", sign: cavGood + `,expires=soon`, want: "bad_expires"},

		two(dated(date(now.Add(-time.Hour))), "SG-07 date an hour ago", ""),
		two(dated(date(now.Add(time.Hour))), "SG-07 date in an hour", ""),
		two(dated(date(now.Add(-2*time.Hour))), "SIG-14 date two hours ago", "outside_window"),
		two(dated(date(now.Add(2*time.Hour))), "SIG-14 date in two hours", "outside_window"),
		two(dated("foo"), "SIG-14 SG-08 Date: foo", "bad_date"),
		two(dated(""), "SIG-14 SG-08 date empty", "bad_date"),
		two(dated("Sun, 01 Nov 99999 12:00:00 GMT"), "SIG-14 year 99999", "bad_date"),
		{name: "SIG-14 date missing", sign: cavGood, before: del("Date"), want: "bad_date"},
		{name: "SIG-14 SG-13 two dates", sign: cavGood, before: add("Date", date(now)), want: "duplicate_header"},

		{name: "SG-09 several algorithms", sign: cavGood, before: set("Digest", "MD5=AAAA, sha-256="+sum256(note)+",unixsum=1")},
		{name: "SG-09 the same twice", sign: cavGood, before: set("Digest", "SHA-256="+sum256(note)+",sha-256="+sum256(note))},
		{name: "SIG-07 sha-256 twice, different", sign: cavGood, before: set("Digest", "SHA-256="+sum256(note)+",sha-256="+sum256("x")), want: "malformed_digest"},
		{name: "SIG-07 covered but absent", sign: cavGood, before: del("Digest"), want: "no_digest"},
		{name: "SIG-07 SG-09 only MD5", sign: cavGood, before: set("Digest", "MD5=AAAA"), want: "unknown_digest"},
		{name: "SIG-07 only SHA-1", sign: cavGood, before: set("Digest", "SHA=AAAA"), want: "unknown_digest"},
		{name: "SG-09 SHA-512 does not fit", sign: cavGood, before: set("Digest", "SHA-256="+sum256(note)+",SHA-512="+strings.Repeat("A", 86)+"=="), want: "digest_mismatch"},
		{name: "SG-09 cut", sign: cavGood, before: set("Digest", "SHA-256=AAAA"), want: "malformed_digest"},
		{name: "SG-09 not canonical base64", sign: cavGood, before: func(r *http.Request) {
			s := sum256(note) // the last character of 32 bytes in base64 has two unused bits
			last := s[len(s)-2]
			r.Header.Set("Digest", "SHA-256="+s[:len(s)-2]+string(rune(last+1))+"=")
		}, want: "malformed_digest"},
		{name: "SG-09 without padding", sign: cavGood, before: set("Digest", "SHA-256="+strings.TrimRight(sum256(note), "=")), want: "malformed_digest"},
		{name: "SG-09 no value", sign: cavGood, before: set("Digest", "SHA-256"), want: "malformed_digest"},
		{name: "SG-13 two digests", sign: cavGood, before: add("Digest", "SHA-256="+sum256(note)), want: "duplicate_header"},

		{name: "SG-11 query covered", target: "/inbox?a=b"},
		{name: "SG-11 query not covered", target: "/inbox?a=b", sign: cavGood},
		{name: "SG-11 query added", sign: cavGood, after: at("/inbox?a=b")},
		{name: "SG-11 query changed", target: "/inbox?a=b", after: at("/inbox?a=c"), want: "bad_signature"},

		{name: "SIG-19 100 kB", after: header(`keyId="` + strings.Repeat("a", 100_000) + `"`), want: "header_too_large"},
		{name: "SIG-19 many parameters", sign: cavGood + manyParameters(1000)},
		{name: "SIG-19 10,000 parameters", sign: cavGood + manyParameters(10_000), want: "header_too_large"},
		{name: "SIG-19 nested quotes", sign: `keyId="a\"b",headers="x"`, want: "malformed_signature"},
		{name: "SIG-19 open quote", after: header(`keyId="a`), want: "malformed_signature"},
		{name: "SIG-19 text after quote", after: header(`keyId="a"b`), want: "malformed_signature"},
		{name: "SIG-19 trailing comma", after: func(r *http.Request) {
			r.Header.Set("Signature", r.Header.Get("Signature")+",")
		}, want: "malformed_signature"},
		{name: "SIG-19 line break", after: header("keyId=\"a\r\nb\""), want: "malformed_signature"},
		{name: "SIG-19 line break in a bare value", after: header("keyId=a\nb"), want: "malformed_signature"},
		{name: "SIG-19 no name", after: header(`="a"`), want: "malformed_signature"},
		{name: "SIG-19 empty", after: header(""), want: "malformed_signature"},
		{name: "no key id", sign: `algorithm="hs2019",headers="(request-target) host date digest"`, want: "no_key_id"},
		{name: "no signature", after: header(cavGood), want: "malformed_signature"},
		{name: "a signature that is not base64", after: header(cavGood + `,signature="%%%%"`), want: "malformed_signature"},
		{name: "a signature that is not canonical base64", after: func(r *http.Request) {
			s := strings.TrimSuffix(r.Header.Get("Signature"), `=="`) // the last character of 256 bytes in base64 has four unused bits
			r.Header.Set("Signature", s[:len(s)-1]+string(rune(s[len(s)-1]+1))+`=="`)
		}, want: "malformed_signature"},
		{name: "the form of RFC 9421 without its input", dialect: RFC9421, after: del("Signature-Input"), want: "malformed_signature"},
	}
	for _, p := range tests {
		if p.dialect == 0 {
			p.dialect = Cavage
		}
		t.Run(p.name, func(t *testing.T) { t.Parallel(); p.run(t) })
	}
}

func manyParameters(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(",a" + strconv.Itoa(i) + "=")
	}
	return b.String()
}
