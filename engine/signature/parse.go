package signature

import (
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"
)

// Options are the inputs that Parse needs in addition to the request.
type Options struct {
	Origin string    // our public origin, such as "https://example.org"; forwarding headers never change it
	Now    time.Time // the time that signatures are compared with
}

// Parse returns the signatures of r that pass its checks, or an error if no signature does. If r
// has a Signature-Input field, Parse reads the signatures of RFC 9421 (at most three); otherwise
// it reads the one signature of draft-cavage. It never reads both dialects, so a request that
// fails in one dialect cannot pass in the other. Parse also checks the digest of body, so a claim
// that verifies vouches for body.
func Parse(r *http.Request, body []byte, o Options) ([]Claim, error) {
	q, err := readRequest(r, body, o)
	if err != nil {
		return nil, err
	}
	if err := First(q, requestChecks); err != nil {
		return nil, err
	}
	var claims []Claim
	var first error
	for _, s := range q.readings() {
		err := First(s, s.checks())
		switch {
		case err == nil:
			claims = append(claims, s.Claim)
		case first == nil:
			first = s.wrapRefusal(err)
		}
	}
	if len(claims) == 0 {
		return nil, first
	}
	return claims, nil
}

// Examination is the result of all checks of Parse; a failed check does not stop the others.
type Examination struct {
	Findings   []Finding // of the request as a whole
	Signatures []Examined
}

// Examined is one signature of a request. Its Claim counts only if there is no error in its own
// Findings and none in the Findings of the Examination.
type Examined struct {
	Claim
	Findings []Finding
}

// Examine runs the checks of Parse without stopping at the first failure.
func Examine(r *http.Request, body []byte, o Options) (Examination, error) {
	q, err := readRequest(r, body, o)
	if err != nil {
		return Examination{}, err
	}
	x := Examination{Findings: All(q, requestChecks)}
	for _, s := range q.readings() {
		found := All(s, s.checks())
		x.Signatures = append(x.Signatures, Examined{s.Claim, found})
	}
	return x, nil
}

// request is a message with the fields that contain its signatures.
type request struct {
	*message
	body   []byte
	now    time.Time
	digest error // result of the RFC 9421 digest check; it is the same for all labels, so the body is hashed once
	hashed bool

	inputs, signatures *httpsfv.Dictionary // RFC 9421; nil until they are read
	line               *string             // draft-cavage: the Signature field; nil until it is found
}

func readRequest(r *http.Request, body []byte, o Options) (*request, error) {
	m, err := newIncoming(r, o.Origin)
	return &request{message: m, body: body, now: o.Now}, err
}

// requestChecks run once for all signatures of a request.
var requestChecks = []Check[*request]{
	{"host", nil, func(q *request) error { return q.checkHost() }},
	{"target", nil, func(q *request) error { return checkTarget(q.target) }},
	{"headers", nil, (*request).readHeaders},
}

// readHeaders finds the fields that contain signatures.
func (q *request) readHeaders() error {
	size := 0
	for _, name := range []string{"Signature-Input", "Signature", "Content-Digest", "Digest", "Date"} {
		for _, line := range q.header[name] {
			size += len(line)
		}
	}
	if size > maxHeader {
		return refuse("header_too_large", "the signature headers are too large")
	}
	if q.dialect() == RFC9421 {
		return q.readRFC9421()
	}
	return q.readCavage()
}

func (q *request) dialect() Dialect {
	if len(q.header["Signature-Input"]) > 0 {
		return RFC9421
	}
	return Cavage
}

// readings returns the signatures that the headers contain.
func (q *request) readings() []*reading {
	switch {
	case q.inputs != nil:
		return q.labelledReadings()
	case q.line != nil:
		return []*reading{{request: q, Claim: Claim{Dialect: Cavage}}}
	}
	return nil
}

// reading is a signature that is being checked, with the results so far.
type reading struct {
	Claim
	*request
	params       map[string]string // draft-cavage
	input, value httpsfv.Member    // RFC 9421: the label's members of Signature-Input and Signature
	list         httpsfv.InnerList // RFC 9421: input as an inner list
}

// checks returns the checks of the signature's dialect. The checks have the same names in both
// dialects.
func (s *reading) checks() []Check[*reading] {
	if s.Dialect == RFC9421 {
		return rfc9421Checks
	}
	return cavageChecks
}
