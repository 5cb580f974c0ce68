package user

import (
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/vocab"
)

// This file has the decisions of engine/audience in SQL. No statement elsewhere reads the fields
// to, cc and audience. A test checks the SQL with the truth table of that package. Stored
// documents have no bto and bcc. The fields to, cc and audience may hold objects in place of ids;
// the SQL finds nobody in these objects, which is the most private reading.

// publicForms are the ways to address everybody (ActivityPub §5.6); vocab reads all of them.
const publicForms = `'{` + string(vocab.Public) + `,as:Public,Public}'::text[]`

// addressesPublic holds for rows whose document addresses everybody.
var addressesPublic = publicIn("raw")

// addressesAny holds for rows whose document names any id of the argument @to in its field "to" or
// "cc". It does not look at the field audience. If @to is null, it holds for all rows.
var addressesAny = `(@to::text[] IS NULL OR ` + anyTextIn("raw -> 'to'", "@to") + ` OR ` + anyTextIn("raw -> 'cc'", "@to") + `)`

// textIn holds for a JSON value that is a text, or a list that contains the text. The operator ?
// alone would hold for an object with a key of that name, too, and a key addresses nobody. An
// index supports the operator. The parameters are SQL expressions.
func textIn(value, text string) string {
	return `(` + value + ` ? ` + text + ` AND jsonb_typeof(` + value + `) <> 'object')`
}

// anyTextIn is textIn for the texts of an SQL array.
func anyTextIn(value, texts string) string {
	return `(` + value + ` ?| ` + texts + ` AND jsonb_typeof(` + value + `) <> 'object')`
}

// formsOf returns the argument @to of addressesAny for a list of ids, and null if the list is
// nil. If the list contains vocab.Public, the result contains every form of it.
func formsOf(to []vocab.ID) []string {
	if to == nil {
		return nil
	}
	all := texts(to)
	if slices.Contains(to, vocab.Public) {
		all = append(all, "as:Public", "Public")
	}
	return all
}

// publicIn holds for a document that addresses everybody, in its field "to" or "cc".
func publicIn(raw string) string {
	return `(coalesce(` + anyTextIn(raw+` -> 'to'`, publicForms) + `, false) OR coalesce(` + anyTextIn(raw+` -> 'cc'`, publicForms) + `, false))`
}

// namedIn holds for a document that names an id in its field to, cc or audience. The parameter
// id is an SQL expression.
func namedIn(raw, id string) string {
	var in []string
	for _, field := range addressed {
		in = append(in, `coalesce(`+textIn(raw+` -> '`+field+`'`, id)+`, false)`)
	}
	return `(` + strings.Join(in, " OR ") + `)`
}

// addressed are the fields of a stored document that name its recipients.
var addressed = []string{"to", "cc", "audience"}

// saysAudience holds for a document that has any of the fields in addressed, even an empty one.
func saysAudience(raw string) string {
	return raw + ` ?| '{` + strings.Join(addressed, ",") + `}'`
}

// privateIn holds for a document that addresses neither everybody, nor everybody on its author's
// server, nor the author's followers. The parameters author and followers are SQL expressions of
// ids. The expression followers is null when the followers collection is unknown.
func privateIn(raw, author, followers string) string {
	return `NOT (` + publicIn(raw) + ` OR ` + namedIn(raw, followers) + ` OR ` + hereIn(raw, author) + `)`
}

// narrowedIn holds for a document that audience.Narrow has marked. The author addressed it to
// everybody, although it is addressed to the author alone.
func narrowedIn(raw string) string {
	return `coalesce(` + raw + ` -> '` + vocab.Narrowed + `' = 'true', false)`
}

// sentTo holds for a document by the user whose field "to" names an id. An index supports it. The
// parameter id is an SQL expression.
func sentTo(raw, id string) string { return textIn(raw+` -> 'to'`, id) }

// amongIn holds for a document that addresses nobody except the actors in ids. The parameter
// ids is an SQL expression of a JSON array.
func amongIn(raw, ids string) string {
	var in []string
	for _, field := range addressed {
		in = append(in, `coalesce(`+raw+` -> '`+field+`', '[]') <@ `+ids)
	}
	return `(` + strings.Join(in, " AND ") + `)`
}

// hereIn holds for a document that is for everybody on its author's server. The parameter
// author is an SQL expression of the author's id.
func hereIn(raw, author string) string {
	return namedIn(raw, `(substring(`+author+` from '^https?://[^/]+') || '/#Public')`)
}

// wroteTo holds when the user has written to @actor in private. @followers is the user's followers
// collection.
var wroteTo = `EXISTS (SELECT FROM activities WHERE type = '` + vocab.Create + `' AND direction = 'outbound' AND ` + sentTo("raw", "@actor") + ` AND ` + privateIn("raw", "actor_uri", "@followers") + `)`

// addressedIn selects those uris of a table that an activity of the user addresses. If kind is
// not empty, only activities of this type count. It looks only at the fields "to" and "cc",
// because the engine addresses activities by these fields, and they have indexes.
func addressedIn(table, kind string) string {
	of := `SELECT ` + table + `.uri FROM ` + table + ` JOIN activities a ON a.raw -> `
	outbound := `.uri WHERE a.direction = 'outbound'`
	if kind != "" {
		outbound += ` AND a.type = '` + kind + `'`
	}
	return of + `'to' ? ` + table + outbound + ` UNION ` + of + `'cc' ? ` + table + outbound
}
