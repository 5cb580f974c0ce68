package outbox

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db/user"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxAudited       = 1 << 10            // bytes of one text in the parameters
	maxAuditedParams = 4<<10 - 512        // bytes of all parameters of a record, which has at most 4 KiB with its other fields
	auditedPart      = 12                 // bytes that the database needs for each value of a document, besides its text
	leftOut          = "lightweb:leftOut" // the name under which a record stores how many parameters it omits
	auditTime        = 5 * time.Second
)

// newAudit returns the audit record of the dispatch x, which ended with the given outcome.
func newAudit(x *exchange, outcome string) user.Audit {
	return user.Audit{At: x.now, Token: x.Token, Action: x.Action.Name, Params: auditedParams(x.Action.Params), Outcome: outcome, Activity: x.answer.Activity}
}

// recordRefusal counts a refused dispatch. If the count cannot be stored, this is logged, and the
// client still gets the refusal.
func (r *refusals) recordRefusal(ctx context.Context, x *exchange, refusal error) {
	kind := refused{token: x.Token, outcome: fault.Code(refusal), hour: x.now.Truncate(time.Hour)}
	// No other names are stored, because clients could invent names without limit.
	if _, known := vocabulary[x.Action.Name]; known {
		kind.action = x.Action.Name
	}
	counted := r.countRefusal(x.User, kind)
	if len(counted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	err := r.storeCounts(ctx, x.User, counted, kind, auditedParams(x.Action.Params))
	if err != nil && fault.KindOf(refusal) != fault.Unavailable { // otherwise the same cause was logged already
		r.log.ErrorContext(ctx, "refusal could not be audited", "user", x.User, "err", err)
	}
}

// storeCounts stores counts of refusals. The parameter params has the parameters of the action
// that was refused last. They are stored with the count whose key is latest.
func (r *refusals) storeCounts(ctx context.Context, u vocab.Username, counted map[refused]int, latest refused, params []byte) error {
	return r.store.Write(ctx, u, func(ctx context.Context, tx *user.Tx) error {
		for kind, times := range counted {
			a := user.Audit{At: kind.hour, Token: kind.token, Action: kind.action, Params: []byte("{}"), Outcome: kind.outcome, Times: times}
			if kind == latest {
				a.Params = params
			}
			if err := tx.Audits.AddRefusal(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// Flush stores the counts of refusals that are not stored yet.
func (o *Outbox) Flush(ctx context.Context) { o.refusals.flushCounts(ctx) }

// flushCounts stores the counts of all users that are still only in memory.
func (r *refusals) flushCounts(ctx context.Context) {
	for u, counted := range r.takeAll() {
		if err := r.storeCounts(ctx, u, counted, refused{}, nil); err != nil {
			r.log.WarnContext(ctx, "refusals could not be audited", "user", u, "err", err)
		}
	}
}

// auditedParams returns the parameters for an audit record. They say what the action was about and
// which actors it was for. Of a parameter that the map audited marks with false, such as the
// content of a post, the record has only the size. So no copy of a text is left when its post is
// deleted. The parameters are added in the order of their names, as long as they fit. The record
// also has the number of omitted parameters. If raw is not a JSON object that can be stored, the
// record has no parameters.
func auditedParams(raw []byte) []byte {
	d, err := vocab.ParseDoc(raw)
	if err != nil {
		return []byte("{}")
	}
	out, room, left := vocab.Doc{}, maxAuditedParams-len(leftOut)-2*auditedPart, 0
	for _, name := range slices.Sorted(maps.Keys(d)) {
		whole, known := audited[name]
		part := shortenTexts(d[name])
		if !whole {
			part = vocab.Doc{"bytes": textSize(d[name])}
		}
		if size := len(name) + auditedPart + weighJSON(part); known && size <= room {
			out[name], room = part, room-size
		} else {
			left++
		}
	}
	if left > 0 {
		out[leftOut] = left
	}
	return out.JSON()
}

// audited lists the parameters of actions. True means that an audit record has the value of the
// parameter. False means that the record has only the size.
var audited = map[string]bool{"actorUri": true, "objectId": true, "activityId": true, "recipientUri": true, "inReplyTo": true, "to": true, "cc": true,
	"visibility": true, "sensitive": true, "name": true, "content": false, "summary": false, "title": false, "tags": false, "type": true, "streamId": true, "feed": true, "entryId": true, "cursor": true, "conversationId": true, "with": true, "upgrades": true, "predecessor": true, "seq": true, "entry": true,
	"commit": false, "groupInfo": false, "welcomes": false, "added": false, "removed": true, "proposal": false, "icon": true, "image": true, "fields": false,
	"offerId": true, "relationshipType": true, "quote": true, "streamTarget": true, "language": true, "attachments": false, "file": false}

// textSize returns the number of bytes of a text. For any other value, the result is the number
// of bytes of the value's JSON.
func textSize(v any) int {
	if s, ok := v.(string); ok {
		return len(s)
	}
	return jsonSize(v)
}

func jsonSize(v any) int { return len(vocab.Doc{"": v}.JSON()) - len(`{"":}`) }

// shortenTexts returns v with each text cut to maxAudited bytes.
func shortenTexts(v any) any {
	switch v := v.(type) {
	case string:
		return clipText(v, maxAudited)
	case vocab.Doc:
		out := vocab.Doc{}
		for name, part := range v {
			out[name] = shortenTexts(part)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, part := range v {
			out[i] = shortenTexts(part)
		}
		return out
	}
	return v
}

// weighJSON estimates how many bytes v takes in the database. The estimate is at least the length
// of its JSON, unless names in it have characters that JSON escapes.
func weighJSON(v any) int {
	n := auditedPart
	switch v := v.(type) {
	case vocab.Doc:
		for name, part := range v {
			n += auditedPart + len(name) + weighJSON(part)
		}
	case []any:
		for _, part := range v {
			n += weighJSON(part)
		}
	default:
		n += jsonSize(v)
	}
	return n
}

func clipText(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }
