package user

import (
	"context"

	"github.com/lightweb/lightweb/engine/vocab"
)

// ListStamps returns the user's stamps that permit a certain object to quote something, the
// newest first. The parameter quoting is the id of that object. The parameter own is the prefix
// of the stamps' ids.
func (t Objects) ListStamps(ctx context.Context, own, quoting vocab.ID) ([]Object, error) {
	return collect[Object](ctx, t.tx, "list stamps", `SELECT `+objectColumns+` FROM objects
		WHERE raw -> 'type' ? '`+vocab.QuoteAuthorization+`' AND raw ->> 'interactingObject' = $2 AND starts_with(uri, $1) AND deleted_at IS NULL ORDER BY id DESC`, own, quoting)
}

// stamps holds for an object o that is the stamp of a stored object's quote. Such a stamp must
// be kept, because the quoted author revokes it by its id alone.
const stamps = `EXISTS (SELECT FROM objects q WHERE q.uri = o.raw ->> 'interactingObject' AND q.raw ->> 'quoteAuthorization' = o.uri)`

// quotesOwn holds for an object o that answers or quotes one of the user's objects, whose ids
// begin with @own. It reads all forms that vocab.QuoteOf reads.
const quotesOwn = `jsonb_path_exists(jsonb_build_array(o.raw -> 'inReplyTo', o.raw -> 'quote', o.raw -> 'quoteUrl', o.raw -> 'quoteUri', o.raw -> '_misskey_quote',
	jsonb_path_query_array(o.raw, '$.tag[*] ? (@.rel == "https://misskey-hub.net/ns#_misskey_quote").href')),
	'$[*] ? (@ starts with $own || @.id starts with $own)', jsonb_build_object('own', @own::text))`

// toldBefore holds for an activity a if an earlier activity has told the user of the same quote.
// This happens because the quoting post may come in both a Create and a QuoteRequest.
const toldBefore = `(a.type IN ('` + vocab.Create + `', '` + vocab.QuoteRequest + `') AND EXISTS (SELECT FROM activities q WHERE q.object_uri = a.object_uri
	AND q.type IN ('` + vocab.Create + `', '` + vocab.QuoteRequest + `') AND q.type <> a.type AND q.actor_uri = a.actor_uri AND q.id < a.id))`
