package explain

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/vocab"
)

// hint says how to fix the first failed check.
func (t *explainer) hint() string {
	if words := t.hintFromVariants(); words != "" {
		return words
	}
	if n := t.Request.ContentLength; n > int64(len(t.Body)) {
		return fmt.Sprintf("the capture is cut off: it has %d bytes of body, and Content-Length says %d", len(t.Body), n)
	}
	switch t.out.Code {
	case "unknown_key":
		return "lightweb actor fetch " + string(vocab.IDOf(t.out.Signatures[0].KeyID).Document()) + " --refresh"
	case "foreign_key":
		return fmt.Sprintf("%s must sign what it sends itself, or prove it: what others pass on without a proof is asked for at its own server", t.out.Actor)
	}
	if words, ok := hints[t.out.Code]; ok {
		return words
	}
	if slices.Contains(senderFaults, t.out.Code) {
		return "the software that sent it has to sign otherwise: nothing can be set here"
	}
	return ""
}

// hints say how to fix a refusal, by its code.
var hints = map[string]string{
	"forbidden":         "the policy in registry/server.json refuses the host",
	"invalid":           "the body is no activity that can be read: whoever signs it is answered 400",
	"digest_mismatch":   "these are not the bytes that were signed: a proxy changed the body, or the capture did (a line break at its end?)",
	"wrong_host":        "public_url has another host: it must be the one that other servers ask",
	"bad_target":        "a proxy has changed the path that was asked for, or the capture did",
	"not_signed":        "it came without a signature: or does a proxy take the Signature headers away?",
	"missing_component": "a header that was signed is not there: does a proxy take it away?",
	"outside_window":    "the clock of the sender or of this machine is wrong; --at tells when it came, if that was another time",
	"expired":           "it came too late: the clock of the sender or of this machine may be wrong, or the request waited",
	"bad_signature":     "the request is not the one that was signed, or another key signed it: compare the lines of the base with what the sender signed; a proxy may change path, query or headers",
	"unusable_key":      "the actor has to publish an RSA key of 2048 to 8192 bits as PEM, or an Ed25519 key as Multikey",
	"weak_key":          "the actor needs a new key: RSA of 2048 to 8192 bits, or Ed25519",
	"local_actor":       "only this server itself may act in the name of its users",
	"foreign_proof":     "the proof in the body is not by a key that the actor lists in its assertionMethod",
	"offline":           "leave --offline out, or give the key with --key",
	"key_gone":          "the signer's server says that the actor was deleted (410)",
	"key_fetch_rate":    "limits.key_fetch_rate was reached for that domain: try again in a minute",
}

// senderFaults are the codes of mistakes that only the sender's software can fix.
var senderFaults = []string{
	"algorithm_mismatch", "authorization_signature", "bad_created", "bad_date", "bad_expires", "bad_key_id", "component_parameter", "created_with_rsa",
	"date_not_covered", "digest_not_covered", "duplicate_component", "duplicate_header", "duplicate_label", "duplicate_parameter",
	"expires_before_created", "header_too_large", "host_not_covered", "label_mismatch", "malformed_content_digest", "malformed_digest", "malformed_field",
	"malformed_signature", "malformed_signature_input", "method_not_covered", "no_created", "no_digest", "no_key_id", "target_not_covered",
	"too_many_signatures", "unknown_algorithm", "unknown_component", "unknown_digest", "unknown_key_type",
}

// hintFromVariants checks whether a signature would verify if the request had arrived with
// another scheme or Host, and says what that means. Such a difference is the usual reason why
// all requests are refused.
func (t *explainer) hintFromVariants() string {
	scheme, ours, _ := strings.Cut(t.Origin, "://")
	theirs, other := t.Request.Host, map[string]string{"https": "http", "http": "https"}[scheme]
	switch {
	case t.out.Code == "wrong_host" && t.verifiesAt(t.Origin, ours):
		return fmt.Sprintf("it was signed for %s and came with Host: %s, which a proxy has rewritten: let it pass the header on (nginx: proxy_set_header Host $host)", ours, theirs)
	case t.out.Code == "wrong_host" && t.verifiesAt(scheme+"://"+theirs, theirs):
		return fmt.Sprintf("it was signed for %s, not for %s: somebody passed it on, or public_url is wrong", theirs, ours)
	case t.out.Code == "bad_signature" && t.verifiesAt(other+"://"+ours, theirs):
		return fmt.Sprintf("it was signed for %s://%s: the sender knows this server by another URL than public_url", other, ours)
	}
	return ""
}

// verifiesAt reports whether one of the signatures would verify if the request had been sent to
// origin with the given Host. It ignores all other failed checks.
func (t *explainer) verifiesAt(origin, host string) bool {
	r := new(http.Request)
	*r = *t.Request
	r.Host = host
	seen, err := t.examine(r, origin)
	if err != nil {
		return false
	}
	for i, s := range seen.Signatures {
		if key := t.signatures[i].Key; key != nil && len(s.Bases) > 0 && s.Verify(key) == nil {
			return true
		}
	}
	return false
}
