package outbox

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lightweb/lightweb/db"
	"github.com/lightweb/lightweb/engine/fault"
	"github.com/lightweb/lightweb/engine/vocab"
)

const (
	maxAudited       = 1 << 10            // bytes of one text among the parameters
	maxAuditedParams = 4<<10 - 512        // bytes of all of them: with the rest, a record has 4 KiB at most
	auditedPart      = 12                 // bytes that each part of a document takes beside its text when it is stored
	leftOut          = "lightweb:leftOut" // how many parameters are not in the record
	auditTime        = 5 * time.Second
)

// newAudit returns the record of a dispatch that ended like this.
func newAudit(x *exchange, outcome string) db.Audit {
	return db.Audit{At: x.now, Token: x.Token, Action: x.Action.Name, Params: auditedParams(x.Action.Params), Outcome: outcome, Activity: x.answer.Activity}
}

// recordRefusal counts a dispatch that came to nothing. It is answered all the same when that
// fails: the record of a refusal is not worth another one.
func (r *refusals) recordRefusal(ctx context.Context, x *exchange, refusal error) {
	kind := refused{token: x.Token, outcome: refusalCode(refusal), hour: x.now.Truncate(time.Hour)}
	if _, known := vocabulary[x.Action.Name]; known { // else names could be invented without end
		kind.action = x.Action.Name
	}
	counted := r.countRefusal(x.User, kind)
	if len(counted) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	err := r.storeCounts(ctx, x.User, counted, kind, auditedParams(x.Action.Params))
	if err != nil && fault.KindOf(refusal) != fault.Unavailable { // else what stood in the way of both is told already
		r.log.ErrorContext(ctx, "refusal could not be audited", "user", x.User, "err", err)
	}
}

// storeCounts stores counts of refusals; params are those of the latest one.
func (r *refusals) storeCounts(ctx context.Context, u vocab.Username, counted map[refused]int, latest refused, params []byte) error {
	return r.store.Write(ctx, u, func(ctx context.Context, tx *db.Tx) error {
		for kind, times := range counted {
			a := db.Audit{At: kind.hour, Token: kind.token, Action: kind.action, Params: []byte("{}"), Outcome: kind.outcome, Times: times}
			if kind == latest {
				a.Params = params
			}
			if err := tx.AddRefusal(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// Flush stores what was refused and only counted.
func (o *Outbox) Flush(ctx context.Context) { o.refusals.flushCounts(ctx) }

// flushCounts stores every count that waits.
func (r *refusals) flushCounts(ctx context.Context) {
	for u, counted := range r.takeAll() {
		if err := r.storeCounts(ctx, u, counted, refused{}, nil); err != nil {
			r.log.WarnContext(ctx, "refusals could not be audited", "user", u, "err", err)
		}
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

func refusalCode(err error) string {
	if e := fault.Of(err); e != nil && e.Code != "" {
		return e.Code
	}
	if c, ok := codes[fault.KindOf(err)]; ok {
		return c
	}
	return "internal_error"
}

// auditedParams returns the parameters that an audit record keeps, in the order of their names, as
// far as there is room: those that say what an action was about and for which actors. Of the words
// it keeps their size alone, so that they are gone with the post, and of parameters that no action
// has their number; none when raw is no JSON object that can be stored.
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

// audited are the parameters of actions: whether an audit record has them as they are, or the size
// of their words.
var audited = map[string]bool{"actorUri": true, "objectId": true, "activityId": true, "recipientUri": true, "inReplyTo": true, "to": true, "cc": true,
	"visibility": true, "sensitive": true, "name": true, "content": false, "summary": false, "title": false, "tags": false, "type": true, "streamId": true, "feed": true, "entryId": true, "cursor": true, "conversationId": true, "with": true, "upgrades": true, "predecessor": true, "seq": true, "entry": true,
	"commit": false, "groupInfo": false, "welcomes": false, "proposal": false, "icon": true, "image": true, "fields": false}

// textSize returns how many bytes a text has, or what else stands in its place when it is written
// as JSON.
func textSize(v any) int {
	if s, ok := v.(string); ok {
		return len(s)
	}
	return jsonSize(v)
}

func jsonSize(v any) int { return len(vocab.Doc{"": v}.JSON()) - len(`{"":}`) }

// shortenTexts cuts the texts in v.
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

// weighJSON returns about how many bytes v takes when it is stored, and not less than it is written
// with.
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
