package signature

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// maxLabels is the greatest number of signatures in a request. There is a limit because the
// verification of each signature may cost the caller a fetch.
const maxLabels = 3

// readRFC9421 reads the fields Signature-Input and Signature, and checks that both have the same
// labels.
func (q *request) readRFC9421() error {
	inputs, err := parseDictionary(q.header, "Signature-Input")
	if err != nil {
		return err
	}
	signatures, err := parseDictionary(q.header, "Signature")
	if err != nil {
		return err
	}
	labels := inputs.Names()
	switch {
	case len(labels) == 0:
		return refuse("not_signed", "the request carries no signature")
	case len(labels) > maxLabels:
		return refuse("too_many_signatures", "the request carries more than three signatures")
	case !slices.Equal(slices.Sorted(slices.Values(labels)), slices.Sorted(slices.Values(signatures.Names()))):
		return refuse("label_mismatch", "signature and signature-input do not have the same labels")
	}
	q.inputs, q.signatures = inputs, signatures
	return nil
}

// labelledReadings returns the signature of each label.
func (q *request) labelledReadings() []*reading {
	all := make([]*reading, len(q.inputs.Names()))
	for i, label := range q.inputs.Names() {
		s := &reading{request: q, Claim: Claim{Dialect: RFC9421, Label: label}}
		s.input, _ = q.inputs.Get(label) // both lookups succeed, because the fields have the same labels
		s.value, _ = q.signatures.Get(label)
		all[i] = s
	}
	return all
}

// rfc9421Checks run once for each label.
var rfc9421Checks = []Check[*reading]{
	{"form", nil, (*reading).readMembers},
	{"components", []string{"form"}, (*reading).readComponents},
	{"coverage", []string{"components"}, func(s *reading) error { return s.checkCoverage(s.Covered, isDigestNeeded(s.method, s.body)) }},
	{DigestCheck, []string{"components"}, (*reading).checkContentDigest},
	{"time", []string{"form"}, (*reading).checkTime},
	{"algorithm", []string{"form"}, (*reading).checkAlgorithm},
	{"key_id", []string{"form"}, (*reading).checkKeyID},
	{"base", []string{"components"}, (*reading).makeBase},
}

// readMembers reads one label's members of Signature-Input and Signature. It leaves KeyID or
// Algorithm empty if the parameter has the wrong type; checkKeyID and checkAlgorithm refuse that.
func (s *reading) readMembers() error {
	var ok bool
	if s.list, ok = s.input.(httpsfv.InnerList); !ok {
		return refuse("malformed_signature", "signature-input does not list the covered components")
	}
	if item, ok := s.value.(httpsfv.Item); ok {
		s.signature, _ = item.Value.([]byte) // a wrong type gives nil, which the next line refuses
	}
	if len(s.signature) == 0 {
		return refuse("malformed_signature", "the signature is not a byte sequence")
	}
	s.KeyID, _ = s.parameter("keyid").(string)
	s.Algorithm, _ = s.parameter("alg").(string)
	return nil
}

// parameter returns the named parameter of the signature (RFC 9421 §2.3), or nil if it is
// absent. A parameter that no check reads is covered by the signature like the others, and has
// no other effect.
func (s *reading) parameter(name string) any {
	v, _ := s.list.Params.Get(name)
	return v
}

func (s *reading) readComponents() (err error) {
	s.Covered, err = componentNames(s.list)
	return err
}

// componentNames returns the names of the covered components. It refuses a component with
// parameters, because peers do not send any, and because parameters such as ;req, ;bs and ;key
// change the meaning of the component.
func componentNames(list httpsfv.InnerList) ([]string, error) {
	names := make([]string, 0, len(list.Items))
	seen := make(map[string]bool, len(list.Items))
	for _, item := range list.Items {
		name, ok := item.Value.(string)
		if !ok || !isComponentName(name) {
			return nil, refuse("malformed_signature", "signature-input does not list the covered components")
		}
		if len(item.Params.Names()) > 0 {
			return nil, refuse("component_parameter", "the component %q has a parameter, which is not supported", clip(name))
		}
		if seen[name] { // RFC 9421 §2.5: a component occurs once
			return nil, refuse("duplicate_component", "the signature covers %q twice", clip(name))
		}
		seen[name] = true
		names = append(names, name)
	}
	return names, nil
}

// isComponentName reports whether s is a field name in lower case (RFC 9421 §2.1), with or
// without an @ before it.
func isComponentName(s string) bool {
	s = strings.TrimPrefix(s, "@")
	const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
	return s != "" && strings.Trim(s, token) == ""
}

// checkCoverage refuses a signature that does not cover the method or the target. If digest is
// true, it also refuses a signature that does not cover the digest of the body.
func (m *message) checkCoverage(covered []string, digest bool) error {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(covered, n) })
	}
	if !has("@method") {
		return refuse("method_not_covered", "the signature does not cover @method")
	}
	pieces := has("@authority", "@path") && (has("@query") || !strings.Contains(m.target, "?"))
	if !has("@target-uri") && !pieces && !has("@authority", "@request-target") {
		return refuse("target_not_covered", "the signature does not cover @target-uri")
	}
	if digest && !has("content-digest") {
		return refuse("digest_not_covered", "the signature does not cover content-digest")
	}
	return nil
}

func (s *reading) checkContentDigest() error {
	if !slices.Contains(s.Covered, "content-digest") {
		return nil
	}
	if !s.hashed {
		s.digest, s.hashed = checkContentDigest(s.header, s.body), true
	}
	return s.digest
}

func (s *reading) checkTime() error {
	created, ok := s.parameter("created").(int64)
	if !ok {
		return refuse("no_created", "the signature does not say when it was created")
	}
	s.Created = time.Unix(created, 0)
	if err := checkWindow(s.Created, s.now); err != nil {
		return err
	}
	if v := s.parameter("expires"); v != nil {
		expires, ok := v.(int64)
		if !ok {
			return refuse("malformed_signature", "expires is not an integer")
		}
		s.Expires = time.Unix(expires, 0)
		return checkExpires(expires, &created, s.now)
	}
	return nil
}

func (s *reading) checkAlgorithm() error {
	if s.parameter("alg") != nil && !slices.Contains([]string{rsaSHA256, rsaSHA512, rsaPSS, edwards}, s.Algorithm) {
		return refuse("unknown_algorithm", "the algorithm of the signature is not supported")
	}
	return nil
}

func (s *reading) checkKeyID() error {
	if _, ok := s.parameter("keyid").(string); !ok {
		return refuse("no_key_id", "the signature does not name its key")
	}
	return checkKeyID(s.KeyID)
}

func (s *reading) makeBase() error {
	base, err := s.signatureBase(s.list, s.Covered)
	if err == nil {
		s.Bases = []string{base}
	}
	return err
}

// signatureBase returns the signature base (RFC 9421 §2.5) for the components of list. The
// parameter covered has the names of these components.
func (m *message) signatureBase(list httpsfv.InnerList, covered []string) (string, error) {
	var b strings.Builder
	for _, name := range covered {
		value, err := m.componentValue(name)
		if err != nil {
			return "", err
		}
		b.WriteString(`"` + name + `": ` + value + "\n")
	}
	params, err := httpsfv.Marshal(httpsfv.List{list})
	if err != nil {
		return "", refuse("malformed_signature", "a parameter of the signature cannot be written as it must be signed")
	}
	b.WriteString(`"@signature-params": ` + params)
	return b.String(), nil
}

// componentValue returns the value of one component (RFC 9421 §2.1 and §2.2).
func (m *message) componentValue(name string) (string, error) {
	path, query, _ := strings.Cut(m.target, "?")
	switch name {
	case "@method":
		return m.method, nil
	case "@target-uri":
		return m.scheme + "://" + m.authority + m.target, nil
	case "@authority":
		return m.authority, nil
	case "@scheme":
		return m.scheme, nil
	case "@request-target":
		return m.raw, nil
	case "@path":
		return path, nil
	case "@query":
		return "?" + query, nil // the value begins with a question mark, even without a query (§2.2.7)
	}
	if strings.HasPrefix(name, "@") {
		return "", refuse("unknown_component", "the component %q is not supported", clip(name))
	}
	return m.fieldValue(name)
}

// parseDictionary parses all lines of a field as one dictionary (RFC 8941 §3.2). It refuses a
// key that occurs twice. By the RFC the last value counts, but not every parser follows that
// rule.
func parseDictionary(h http.Header, name string) (*httpsfv.Dictionary, error) {
	d, err := httpsfv.UnmarshalDictionary(h[name])
	if err != nil {
		return nil, refuse("malformed_"+strings.ReplaceAll(strings.ToLower(name), "-", "_"), "%s is malformed", strings.ToLower(name))
	}
	members, quoted := len(h[name]), false
	for _, line := range h[name] {
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case c == ',' && !quoted: // outside strings a comma can only separate members
				members++
			}
		}
	}
	if n := len(d.Names()); n > 0 && n != members {
		return nil, refuse("duplicate_label", "%s has the same key twice", strings.ToLower(name))
	}
	return d, nil
}

// signRFC9421 signs m in the dialect RFC 9421. The signature does not cover @query and
// @request-target, because @target-uri contains both, and because peers interpret @query and
// @request-target differently.
func signRFC9421(m *message, body []byte, k Key, algorithm string, now time.Time) error {
	covered := []string{"@method", "@target-uri", "@authority"}
	if len(body) > 0 {
		m.header.Set("Content-Digest", contentDigestField(body))
		covered = append(covered, "content-digest")
		if m.header.Get("Content-Type") != "" {
			covered = append(covered, "content-type")
		}
		if m.header.Get(synchronization) != "" {
			covered = append(covered, synchronization)
		}
	}
	list := httpsfv.InnerList{Params: httpsfv.NewParams()}
	for _, name := range covered {
		list.Items = append(list.Items, httpsfv.NewItem(name))
	}
	list.Params.Add("created", now.Unix())
	list.Params.Add("keyid", k.ID)
	list.Params.Add("alg", algorithm)
	base, err := m.signatureBase(list, covered)
	if err != nil {
		return err
	}
	signature, err := signBase(k.Private, base)
	if err != nil {
		return err
	}
	_, params, _ := strings.Cut(base, `"@signature-params": `)
	m.header.Set("Signature-Input", "sig1="+params)
	m.header.Set("Signature", "sig1=:"+base64.StdEncoding.EncodeToString(signature)+":")
	return nil
}
