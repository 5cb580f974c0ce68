package explain

import (
	"cmp"
	"crypto"
	"crypto/rsa"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/signature"
	"github.com/lightweb/lightweb/engine/vocab"
)

// explainer turns the findings about a request into a report.
type explainer struct {
	SignedRequest
	seen       signature.Examination
	sender     []signature.Finding // about the activity in the body and its actor
	signatures []actor.Explained   // the signatures in seen, together with their keys
	out        SignatureReport
}

func (t *explainer) fillReport() {
	t.out.Checks = t.describeChecks(append(t.seen.Findings, t.sender...), actor.Explained{})
	for _, s := range t.signatures {
		t.out.Signatures = append(t.out.Signatures, t.describeSignature(s))
	}
	t.out.failure = t.firstFailure()
	if t.out.Verified = t.out.failure == nil; !t.out.Verified {
		t.out.Code = codeOf(t.out.failure)
		t.out.Hint = t.hint()
	}
}

// firstFailure returns the error with which the engine would refuse the request, or nil. That is
// the error of the first failed check, in the order in which the engine checks. If a request has
// several signatures, it is enough that one of them is good.
func (t *explainer) firstFailure() error {
	var read, held []error
	for i, s := range t.signatures {
		err := refusal(t.seen.Signatures[i].Findings)
		read = append(read, err)
		if err == nil {
			held = append(held, refusal(s.Findings))
		}
	}
	for _, err := range []error{refusal(t.seen.Findings), refusalOfAll(read), refusal(t.sender), refusalOfAll(held)} {
		if err != nil {
			return err
		}
	}
	return nil
}

// refusal returns the first error among the findings.
func refusal(found []signature.Finding) error {
	for _, f := range found {
		if f.Err != nil {
			return f.Err
		}
	}
	return nil
}

// refusalOfAll returns nil if one of the refusals is nil, because then one of several signatures
// was accepted. Otherwise it returns the first refusal, or nil if there are no refusals.
func refusalOfAll(refusals []error) error {
	if len(refusals) == 0 || slices.Contains(refusals, nil) {
		return nil
	}
	return refusals[0]
}

func (t *explainer) describeSignature(s actor.Explained) CheckedSignature {
	out := CheckedSignature{Dialect: s.Dialect.String(), Label: s.Label, KeyID: s.KeyID, Algorithm: s.Algorithm,
		Covered: append([]string{}, s.Covered...), Created: utcOrNil(s.Created), Expires: utcOrNil(s.Expires), Base: []string{}, Checks: t.describeChecks(s.Findings, s)}
	if s.Owner != nil {
		out.Owner = s.Owner.ID
	}
	if len(s.Bases) > 0 {
		out.Base = strings.Split(s.Bases[0], "\n")
	}
	return out
}

func utcOrNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

func (t *explainer) describeChecks(found []signature.Finding, s actor.Explained) []Check {
	out := make([]Check, len(found))
	for i, f := range found {
		out[i] = Check{Check: f.Check, Result: CheckNotReached}
		if !f.Reached {
			continue
		}
		out[i].Result = CheckPassed
		if tell := facts[f.Check]; tell != nil {
			out[i].Says = tell(t, s)
		}
		switch {
		case f.Err != nil && out[i].Says != "":
			out[i].Says = f.Err.Error() + ": " + out[i].Says
		case f.Err != nil:
			out[i].Says = f.Err.Error()
		case facts[f.Check] == nil:
			out[i].Says = says[f.Check](t, s)
		case out[i].Says == "":
			out[i].Says = "none"
		}
		if f.Err != nil {
			out[i].Result, out[i].Code = CheckFailed, codeOf(f.Err)
		}
	}
	return out
}

// codeOf returns the code of a refusal, for use by programs.
func codeOf(err error) string {
	switch e := fault.Of(err); {
	case e == nil:
		return "internal"
	case e.Code != "":
		return e.Code
	case e.Kind == fault.Forbidden:
		return "forbidden"
	case e.Kind == fault.Invalid:
		return "invalid"
	}
	return "unavailable"
}

// facts describe the value that a check examined, whether or not the check passed. The description
// is empty if the value could not be read, or if there is none.
var facts = map[string]func(*explainer, actor.Explained) string{
	"target":     func(t *explainer, _ actor.Explained) string { return t.Request.RequestURI },
	"algorithm":  func(_ *explainer, s actor.Explained) string { return cmp.Or(s.Algorithm, "left to the key") },
	"components": func(_ *explainer, s actor.Explained) string { return strings.Join(s.Covered, " ") },
	"key_id":     func(_ *explainer, s actor.Explained) string { return s.KeyID },
	"agreement": func(_ *explainer, s actor.Explained) string {
		return cmp.Or(s.Algorithm, "any algorithm") + ", and the key is " + keyName(s.Key)
	},
}

// says describes the meaning of a passed check, for each check that is not in facts.
var says = map[string]func(*explainer, actor.Explained) string{
	"host":    func(t *explainer, _ actor.Explained) string { return "Host is " + t.out.Host },
	"headers": func(t *explainer, _ actor.Explained) string { return t.signatures[0].Dialect.String() },
	"body":    func(t *explainer, _ actor.Explained) string { return fmt.Sprintf("an activity by %s", t.out.Actor) },
	"sender":  func(*explainer, actor.Explained) string { return "it is by an actor of another server" },
	"sender_policy": func(t *explainer, _ actor.Explained) string {
		return t.out.Actor.Host() + " may talk to this server"
	},

	"form":     func(*explainer, actor.Explained) string { return "all parameters can be read" },
	"coverage": func(*explainer, actor.Explained) string { return "everything is covered that must be" },
	"time":     (*explainer).describeAge,
	"digest":   (*explainer).describeDigest,
	"base": func(_ *explainer, s actor.Explained) string {
		return fmt.Sprintf("%d lines", strings.Count(s.Bases[0], "\n")+1)
	},

	"policy": func(_ *explainer, s actor.Explained) string {
		return vocab.IDOf(s.KeyID).Host() + " may talk to this server"
	},
	"key_server": func(*explainer, actor.Explained) string { return "the key lies on the actor's server" },
	"key":        func(_ *explainer, s actor.Explained) string { return fmt.Sprintf("%s lists it as its own", s.Owner.ID) },
	"owner":      func(*explainer, actor.Explained) string { return "the key is the actor's" },
	"usable":     describeUsable,
	"strength":   func(_ *explainer, s actor.Explained) string { return keyName(s.Key) },
	"verified":   func(*explainer, actor.Explained) string { return "the signature is of this base, by this key" },
}

func (t *explainer) describeDigest(s actor.Explained) string {
	if !slices.Contains(s.Covered, "digest") && !slices.Contains(s.Covered, "content-digest") {
		return "none is needed"
	}
	return fmt.Sprintf("it fits the body of %d bytes", len(t.Body))
}

// describeAge says when the request was made, by the time in its signature.
func (t *explainer) describeAge(s actor.Explained) string {
	words := "made " + s.Created.UTC().Format(time.RFC3339) + ", " + describeGap(time.Since(s.Created), "ago", "from now")
	if d := t.At.Sub(s.Created); d != 0 {
		words += "; " + describeGap(d, "before", "after") + " it came"
	}
	return words
}

func describeGap(d time.Duration, before, after string) string {
	if d < 0 {
		d, before = -d, after
	}
	if d < 48*time.Hour {
		return d.Round(time.Second).String() + " " + before
	}
	return fmt.Sprintf("%d days %s", d/(24*time.Hour), before)
}

func describeUsable(_ *explainer, s actor.Explained) string {
	if s.Renewed {
		return "its server has another one now than was remembered"
	}
	return "the key can be read"
}

func keyName(key crypto.PublicKey) string {
	if k, ok := key.(*rsa.PublicKey); ok {
		return fmt.Sprintf("RSA, %d bits", k.N.BitLen())
	}
	return "Ed25519"
}
