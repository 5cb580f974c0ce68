package outbox

import (
	"context"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxAudited     = 1 << 10 // bytes of one text among the parameters
	maxAuditedName = 64      // bytes of an action's name
	auditTime      = 5 * time.Second
)

// audit returns the record of a dispatch that ended like this.
func audit(x *exchange, outcome string) db.Audit {
	return db.Audit{At: x.now, Token: x.Token, Action: clip(x.Action.Name, maxAuditedName), Params: auditedParams(x.Action.Params),
		Outcome: outcome, Activity: x.result.ActivityID}
}

// auditRefusal records a dispatch that came to nothing. It is answered all the same when that fails: the record of a
// refusal is not worth another one.
func (o *Outbox) auditRefusal(ctx context.Context, x *exchange, refusal error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	x.result = Result{}
	err := o.Store.Write(ctx, x.User, func(ctx context.Context, tx *db.Tx) error {
		return tx.AddAudit(ctx, audit(x, code(refusal)))
	})
	if err != nil && fault.KindOf(refusal) != fault.Unavailable { // else what stood in the way of both is told already
		o.Log.ErrorContext(ctx, "refusal could not be audited", "user", x.User, "err", err)
	}
}

// codes name the refusals that have no name of their own.
var codes = map[fault.Kind]string{
	fault.Invalid:       "invalid",
	fault.Unprocessable: "unprocessable",
	fault.Forbidden:     "forbidden",
	fault.NotFound:      "not_found",
	fault.NoUser:        "not_found",
	fault.Gone:          "gone",
	fault.Conflict:      "conflict",
	fault.RateLimited:   "rate_limited",
	fault.Unavailable:   "unavailable",
	fault.Busy:          "busy",
}

func code(err error) string {
	if e := fault.Of(err); e != nil && e.Code != "" {
		return e.Code
	}
	if c, ok := codes[fault.KindOf(err)]; ok {
		return c
	}
	return "internal_error"
}

// auditedParams returns the parameters with long texts cut; none when they are no JSON object that can be stored.
func auditedParams(raw []byte) []byte {
	d, err := vocab.ParseDoc(raw)
	if err != nil {
		return []byte("{}")
	}
	return short(d).(vocab.Doc).JSON()
}

func short(v any) any {
	switch v := v.(type) {
	case string:
		return clip(v, maxAudited)
	case vocab.Doc:
		out := vocab.Doc{}
		for name, part := range v {
			out[clip(name, maxAuditedName)] = short(part)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, part := range v {
			out[i] = short(part)
		}
		return out
	}
	return v
}

func clip(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }
