package inbox

import (
	"context"
	"net/http"

	"github.com/lightweb/lightweb/engine/actor"
	"github.com/lightweb/lightweb/engine/pipeline"
	"github.com/lightweb/lightweb/engine/policy"
	"github.com/lightweb/lightweb/engine/vocab"
)

// Admit returns the actor who signed a request that carries no activity. As an inbox does, it
// refuses a request of a blocked host or a suspended actor, a request with an invalid signature,
// and a request of a host or actor that has sent too many requests.
func (i *Inbox) Admit(ctx context.Context, r *http.Request, body []byte) (*vocab.Actor, error) {
	x := &receiving{Inbound: pipeline.Inbound{Request: r, Body: body}, came: i.Now(), payer: policy.PayerOf(ctx)}
	if err := i.checkClaims(x); err != nil {
		return nil, err
	}
	signer, err := i.Verifier.Signer(ctx, x.claims, "")
	if err != nil {
		return nil, actor.ExplainGone(err)
	}
	if err := i.Gate.CheckActor(signer.ID); err != nil {
		return nil, err
	}
	return signer, i.budgets.countRequest(x, signer.ID)
}
