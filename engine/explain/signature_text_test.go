package explain

import (
	"net/http"
	"testing"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/signature"
)

// Every check has a description, even if the signature lacks the value that the check is about.
func TestAPassedCheckOfAnAbsentValueIsDescribed(t *testing.T) {
	t.Parallel()
	e := &explainer{SignedRequest: SignedRequest{Request: &http.Request{}}}
	for name := range facts {
		c := e.describeChecks([]signature.Finding{{Check: name, Reached: true}}, actor.Explained{})[0]
		if c.Result != CheckPassed || c.Says == "" {
			t.Errorf("%s is described as %+v", name, c)
		}
	}
}
