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

// hashBody returns the digest of body by the algorithm of that name in lower case, or nil for one
// that is not used here. The older ones are unknown on purpose: MD5 and SHA-1 can be made to fit
// two bodies.
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

// checkContentDigest compares Content-Digest (RFC 9530 §2) with body: every digest we know must
// fit, and one must be known.
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
		member, _ := d.Get(name) // there: it is one of its names
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

// checkDigest compares the only line of Digest (RFC 3230 §4.3.2) with body: SHA-256 must be there,
// and it and SHA-512, if that is there too, must fit.
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
