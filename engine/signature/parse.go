package signature

import (
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"
)

// Options are the facts that Parse needs besides the request.
type Options struct {
	Origin string    // our public origin, such as "https://example.org": forwarded headers never have a say in it
	Now    time.Time // what the times of signatures are compared with
}

// Parse returns the signatures of r worth verifying, at least one: those of RFC 9421 (at most
// three) if there is a Signature-Input field, else the one of draft-cavage. Never both: whoever
// can break one must not get another try. The digest of body is checked here too, so a claim that
// verifies vouches for body.
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

// Examination is all that the checks of Parse find, with none left out.
type Examination struct {
	Findings   []Finding // of the request as a whole
	Signatures []Examined
}

// Examined is one signature of a request. Its claim counts only when all findings are good.
type Examined struct {
	Claim
	Findings []Finding
}

// Examine goes through the checks of Parse and stops at none.
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

// request is a message with the fields that its signatures are read from.
type request struct {
	*message
	body   []byte
	now    time.Time
	digest error // of RFC 9421; the same for all labels, so a body is hashed once
	hashed bool

	inputs, signatures *httpsfv.Dictionary // RFC 9421: nil until they were read
	line               *string             // draft-cavage: the Signature field, nil until it was found
}

func readRequest(r *http.Request, body []byte, o Options) (*request, error) {
	m, err := newIncoming(r, o.Origin)
	return &request{message: m, body: body, now: o.Now}, err
}

// requestChecks are made once for all signatures.
var requestChecks = []Check[*request]{
	{"host", nil, func(q *request) error { return q.checkHost() }},
	{"target", nil, func(q *request) error { return checkTarget(q.target) }},
	{"headers", nil, (*request).readHeaders},
}

// readHeaders finds the fields that carry signatures.
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

// readings returns the signatures that the headers were found to hold.
func (q *request) readings() []*reading {
	switch {
	case q.inputs != nil:
		return q.labelledReadings()
	case q.line != nil:
		return []*reading{{request: q, Claim: Claim{Dialect: Cavage}}}
	}
	return nil
}

// reading is a signature while the checks read it, with their results so far.
type reading struct {
	Claim
	*request
	params       map[string]string // draft-cavage
	input, value httpsfv.Member    // RFC 9421: the label's members of Signature-Input and Signature
	list         httpsfv.InnerList // RFC 9421: input, when it is one
}

// checks returns the checks of the dialect. They have the same names in both.
func (s *reading) checks() []Check[*reading] {
	if s.Dialect == RFC9421 {
		return rfc9421Checks
	}
	return cavageChecks
}
