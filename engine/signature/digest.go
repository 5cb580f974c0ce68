package signature

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/dunglas/httpsfv"
)

// hashBody returns the digest of body by the named algorithm, or nil if the algorithm is not
// supported. The name is in lower case. MD5 and SHA-1 are left out on purpose, because anybody
// can make two bodies with the same digest.
func hashBody(algorithm string, body []byte) []byte {
	switch algorithm {
	case "sha-256":
		s := sha256.Sum256(body)
		return s[:]
	case "sha-512":
		s := sha512.Sum512(body)
		return s[:]
	}
	return nil
}

func contentDigestField(body []byte) string {
	return "sha-256=:" + base64.StdEncoding.EncodeToString(hashBody("sha-256", body)) + ":"
}

func digestField(body []byte) string {
	return "SHA-256=" + base64.StdEncoding.EncodeToString(hashBody("sha-256", body))
}

// checkContentDigest compares Content-Digest (RFC 9530 §2) with body. At least one digest must
// be of a supported algorithm, and all such digests must match.
func checkContentDigest(h http.Header, body []byte) error {
	if len(h["Content-Digest"]) == 0 {
		return refuse("no_digest", "the request has no content-digest")
	}
	d, err := parseDictionary(h, "Content-Digest")
	if err != nil {
		return err
	}
	known := false
	for _, name := range d.Names() {
		member, _ := d.Get(name) // found, because the name is from Names
		item, ok := member.(httpsfv.Item)
		if !ok {
			return refuse("malformed_content_digest", "content-digest is malformed")
		}
		want := hashBody(name, body)
		if want == nil {
			continue
		}
		known = true
		got, ok := item.Value.([]byte)
		if !ok || len(got) != len(want) {
			return refuse("malformed_content_digest", "content-digest is malformed")
		}
		if subtle.ConstantTimeCompare(got, want) != 1 {
			return refuse("digest_mismatch", "content-digest does not fit the body")
		}
	}
	if !known {
		return refuse("unknown_digest", "content-digest holds neither sha-256 nor sha-512")
	}
	return nil
}

// checkDigest compares the Digest field (RFC 3230 §4.3.2), which has only one line, with body.
// The field must have a SHA-256 digest, and that digest must match. If the field also has a
// SHA-512 digest, that one must match, too.
func checkDigest(h http.Header, body []byte) error {
	if len(h["Digest"]) == 0 {
		return refuse("no_digest", "the request has no digest")
	}
	seen := map[string]string{}
	for entry := range strings.SplitSeq(h.Get("Digest"), ",") {
		name, value, ok := strings.Cut(strings.Trim(entry, " \t"), "=")
		if !ok {
			return refuse("malformed_digest", "digest is malformed")
		}
		name = strings.ToLower(name)
		if before, again := seen[name]; again {
			if before != value {
				return refuse("malformed_digest", "digest has two values for the same algorithm")
			}
			continue
		}
		seen[name] = value
		want := hashBody(name, body)
		if want == nil {
			continue
		}
		got, err := base64.StdEncoding.Strict().DecodeString(value)
		if err != nil || len(got) != len(want) {
			return refuse("malformed_digest", "digest is malformed")
		}
		if subtle.ConstantTimeCompare(got, want) != 1 {
			return refuse("digest_mismatch", "digest does not fit the body")
		}
	}
	if _, ok := seen["sha-256"]; !ok {
		return refuse("unknown_digest", "digest does not hold SHA-256")
	}
	return nil
}
