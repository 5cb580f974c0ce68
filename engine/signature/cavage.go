package signature

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-fed/httpsig"
)

const (
	requestTarget = "(request-target)"
	createdField  = "(created)"
	expiresField  = "(expires)"
)

// readCavage finds the header field that contains the signature. Castopod also repeats its
// signature in Authorization, which is not read.
//
// The package httpsig is used to sign but not to verify, because its verifier has three faults.
// It always takes the time from the wall clock, it splits parameters at commas inside quotes, and
// it checks the decoded path instead of the path that was sent.
func (q *request) readCavage() error {
	if len(q.header["Signature"]) == 0 {
		if scheme, _, _ := strings.Cut(q.header.Get("Authorization"), " "); strings.EqualFold(scheme, "Signature") {
			return refuse("authorization_signature", "signatures are taken from the signature header only")
		}
		return refuse("not_signed", "the request carries no signature")
	}
	for _, name := range []string{"Signature", "Date", "Digest"} {
		if err := q.checkSingle(name); err != nil {
			return err
		}
	}
	q.line = &q.header["Signature"][0]
	return nil
}

var cavageChecks = []Check[*reading]{
	{"form", nil, (*reading).readParameters},
	{"algorithm", []string{"form"}, (*reading).checkCavageAlgorithm},
	{"components", []string{"form"}, (*reading).readCavageComponents},
	{"coverage", []string{"components"}, func(s *reading) error { return checkCavageCoverage(s.Covered, isDigestNeeded(s.method, s.body)) }},
	{"time", []string{"components"}, (*reading).checkCavageTime},
	{"key_id", []string{"form"}, (*reading).checkCavageKeyID},
	{DigestCheck, []string{"components"}, (*reading).checkCavageDigest},
	{"base", []string{"components"}, (*reading).makeCavageBases},
}

func (s *reading) readParameters() (err error) {
	if s.params, err = parseCavageHeader(*s.line); err != nil {
		return err
	}
	s.KeyID, s.Algorithm = s.params["keyId"], strings.ToLower(s.params["algorithm"])
	if s.signature, err = base64.StdEncoding.Strict().DecodeString(s.params["signature"]); err != nil || len(s.signature) == 0 {
		return refuse("malformed_signature", "the signature is not base64")
	}
	return nil
}

func (s *reading) checkCavageAlgorithm() error {
	if !slices.Contains([]string{"", "hs2019", "rsa-sha256", "rsa-sha512", edwards}, s.Algorithm) {
		return refuse("unknown_algorithm", "the algorithm of the signature is not supported")
	}
	return nil
}

func (s *reading) readCavageComponents() (err error) {
	s.Covered, err = cavageCovered(s.params, s.Algorithm)
	return err
}

func (s *reading) checkCavageKeyID() error {
	if _, ok := s.params["keyId"]; !ok {
		return refuse("no_key_id", "the signature does not name its key")
	}
	return checkKeyID(s.KeyID)
}

func (s *reading) checkCavageDigest() error {
	if !slices.Contains(s.Covered, "digest") {
		return nil
	}
	return checkDigest(s.header, s.body)
}

func (s *reading) makeCavageBases() (err error) {
	s.Bases, err = s.cavageBases(s.Covered, s.params)
	return err
}

// parseCavageHeader reads the parameters of a Signature header (draft-cavage-12 §4.1). Their
// values may be quoted or bare, and their order does not matter. The result also contains unknown
// parameters, which callers ignore as the draft says. parseCavageHeader refuses a parameter that
// occurs twice.
func parseCavageHeader(s string) (map[string]string, error) {
	malformed := refuse("malformed_signature", "the signature header is malformed")
	params := map[string]string{}
	for {
		name, rest, ok := strings.Cut(strings.TrimLeft(s, " \t"), "=")
		if !ok || name == "" || strings.ContainsAny(name, " \t\",") {
			return nil, malformed
		}
		var value string
		if strings.HasPrefix(rest, `"`) {
			value, rest, ok = strings.Cut(rest[1:], `"`)
		} else if i := strings.IndexAny(rest, ", \t"); i >= 0 {
			value, rest = rest[:i], rest[i:]
		} else {
			value, rest = rest, ""
		}
		// A backslash has no use except to hide a quote, so it is refused, too.
		if !ok || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f || c == '"' || c == '\\' }) {
			return nil, malformed
		}
		if _, again := params[name]; again {
			return nil, refuse("duplicate_parameter", "the signature header has a parameter twice")
		}
		params[name] = value
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			return params, nil
		}
		if rest[0] != ',' {
			return nil, malformed
		}
		s = rest[1:]
	}
}

// cavageCovered returns the names of the covered components, in lower case.
func cavageCovered(params map[string]string, algorithm string) ([]string, error) {
	headers, ok := params["headers"]
	if !ok { // the default (draft-cavage-12 §2.1.6) never covers enough, but with it the coverage check can name what is missing
		headers = "date"
	}
	covered := strings.Fields(strings.ToLower(headers))
	if len(covered) == 0 {
		return nil, refuse("malformed_signature", "the signature covers nothing")
	}
	seen := make(map[string]bool, len(covered))
	for _, name := range covered {
		if seen[name] {
			return nil, refuse("duplicate_component", "the signature covers %q twice", clip(name))
		}
		seen[name] = true
		switch name {
		case requestTarget:
		case createdField, expiresField:
			if strings.HasPrefix(algorithm, "rsa") { // §2.3
				return nil, refuse("created_with_rsa", "%s may not be covered with the algorithm %s", name, algorithm)
			}
		default:
			if !isComponentName(name) || strings.HasPrefix(name, "@") {
				return nil, refuse("unknown_component", "the component %q is not supported", clip(name))
			}
		}
	}
	return covered, nil
}

// checkCavageCoverage refuses a signature that does not cover the target, the host or the time.
// If digest is true, it also refuses a signature that does not cover the digest of the body.
func checkCavageCoverage(covered []string, digest bool) error {
	has := func(name string) bool { return slices.Contains(covered, name) }
	switch {
	case !has(requestTarget):
		return refuse("target_not_covered", "the signature does not cover (request-target)")
	case !has("host"):
		return refuse("host_not_covered", "the signature does not cover host")
	case !has("date") && !has(createdField):
		return refuse("date_not_covered", "the signature does not cover date")
	case digest && !has("digest"):
		return refuse("digest_not_covered", "the signature does not cover digest")
	}
	return nil
}

// checkCavageTime refuses a signature whose covered times are too far from now, or that has
// expired.
func (s *reading) checkCavageTime() error {
	if slices.Contains(s.Covered, "date") {
		date, err := http.ParseTime(s.header.Get("Date"))
		if err != nil {
			return refuse("bad_date", "the date is missing or malformed")
		}
		s.Created = date
		if err := checkWindow(date, s.now); err != nil {
			return err
		}
	}
	var created *int64
	if slices.Contains(s.Covered, createdField) {
		t, err := parseUnix(s.params, "created")
		if err != nil {
			return err
		}
		s.Created = time.Unix(t, 0)
		if err := checkWindow(s.Created, s.now); err != nil {
			return err
		}
		created = &t
	}
	// An expiry that is not covered may be forged, but a forged one can only make the signature
	// fail.
	if _, ok := s.params["expires"]; ok || slices.Contains(s.Covered, expiresField) {
		t, err := parseUnix(s.params, "expires")
		if err != nil {
			return err
		}
		s.Expires = time.Unix(t, 0)
		return checkExpires(t, created, s.now)
	}
	return nil
}

// parseUnix returns the named parameter as seconds since 1970. The parameter must consist of
// digits only, without sign or fraction.
func parseUnix(params map[string]string, name string) (int64, error) {
	s := params[name]
	t, err := strconv.ParseInt(s, 10, 64)
	if err != nil || strings.Trim(s, "0123456789") != "" {
		return 0, refuse("bad_"+name, "the signature's %s is missing or malformed", name)
	}
	return t, nil
}

// cavageBases returns the strings that may have been signed (draft-cavage-12 §2.3). There are two
// strings when the target has a query, because Fedify and some other peers sign the target
// without its query.
func (m *message) cavageBases(covered []string, params map[string]string) ([]string, error) {
	targets := []string{m.target}
	if path, _, ok := strings.Cut(m.target, "?"); ok {
		targets = append(targets, path)
	}
	bases := make([]string, 0, len(targets))
	for _, target := range targets {
		lines := make([]string, 0, len(covered))
		for _, name := range covered {
			var value string
			var err error
			switch name {
			case requestTarget:
				value = strings.ToLower(m.method) + " " + target
			case createdField:
				value = params["created"]
			case expiresField:
				value = params["expires"]
			default:
				value, err = m.fieldValue(name)
			}
			if err != nil {
				return nil, err
			}
			lines = append(lines, name+": "+value)
		}
		bases = append(bases, strings.Join(lines, "\n"))
	}
	return bases, nil
}

// signCavage signs m with the package httpsig, by the scheme of draft-cavage that corresponds to
// algorithm.
func signCavage(m *message, body []byte, k Key, algorithm string) error {
	scheme := httpsig.ED25519
	written := "hs2019"
	if algorithm == rsaSHA256 {
		scheme, written = httpsig.RSA_SHA256, "rsa-sha256"
	}
	covered := []string{requestTarget, "host", "date"}
	optional := "Accept"
	if len(body) > 0 {
		m.header.Set("Digest", digestField(body))
		covered = append(covered, "digest")
		optional = "Content-Type"
	}
	if m.header.Get(optional) != "" {
		covered = append(covered, strings.ToLower(optional))
	}
	if len(body) > 0 && m.header.Get(synchronization) != "" {
		covered = append(covered, synchronization)
	}
	// httpsig signs URL.Path, which is decoded, and takes Host from the headers. So it gets a
	// separate request whose Path is the target as it will be sent.
	stub := &http.Request{Method: m.method, URL: &url.URL{Path: m.target}, Header: m.header.Clone()}
	stub.Header.Set("Host", m.host)
	signer, _, err := httpsig.NewSigner([]httpsig.Algorithm{scheme}, httpsig.DigestSha256, covered, httpsig.Signature, 0)
	if err != nil {
		return fmt.Errorf("make signer: %w", err)
	}
	if err := signer.SignRequest(k.Private, k.ID, stub, nil); err != nil {
		return err
	}
	// httpsig always writes the algorithm hs2019, but some peers accept only the name of the
	// real algorithm. The signature does not cover this parameter, so it can be replaced.
	header := strings.Replace(stub.Header.Get("Signature"), `algorithm="hs2019"`, `algorithm="`+written+`"`, 1)
	m.header.Set("Signature", header)
	return nil
}
