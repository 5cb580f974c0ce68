package schema

import "strings"

// heldColumn is a column of users' databases that names actors. A user's database holds data of an
// actor if such a column names the actor.
type heldColumn struct {
	table, column string
	since         int    // the first schema version that has the column
	array         bool   // the column is an array of actors
	follows       string // the condition that the user may follow the row's actor; empty: never
}

// heldColumns are all columns that name actors, except the authors in documents of objects. Add a
// new column that names actors here, or to the exceptions of the test with a reason.
var heldColumns = []heldColumn{
	{table: "relationships", column: "actor_uri", since: 1, follows: `type = 'following' AND status <> 'rejected'`},
	{table: "actors", column: "uri", since: 1},
	{table: "activities", column: "actor_uri", since: 1},
	{table: "feed", column: "actor_uri", since: 1},
	{table: "reactions", column: "actor_uri", since: 1},
	{table: "group_members", column: "actor_uri", since: 1},
	{table: "blocks", column: "actor_uri", since: 2},
	{table: "pins", column: "actor_uri", since: 3},
	{table: "votes", column: "actor_uri", since: 3},
	{table: "unnamed_recipients", column: "actors", since: 7, array: true},
	{table: "requests", column: "actor_uri", since: 14},
	{table: "correspondents", column: "actor_uri", since: 14},
	{table: "conversation_members", column: "actor_uri", since: 30},
	{table: "mls_inbox", column: "sender_uri", since: 32},
	{table: "mls_welcomes", column: "sender_uri", since: 32},
	{table: "mls_held", column: "recipients", since: 36, array: true},
}

// HeldColumns returns the columns of users' databases that name actors, as table.column. The
// authors in documents of objects are not among them.
func HeldColumns() (all []string) {
	for _, h := range heldColumns {
		all = append(all, h.table+"."+h.column)
	}
	return all
}

// KnownActor is an actor that a user's database names.
type KnownActor struct {
	Actor   string
	Follows bool // the user may follow it
}

// KnownActors returns the query for the actors that a user's database of a version names, each
// with whether the user may follow it. $1 is the user's own actor, which is left out.
func KnownActors(version int) string {
	return `SELECT actor, bool_or(follows) FROM (` + heldIn(version) + `) AS k WHERE actor <> '' AND actor <> $1 GROUP BY actor`
}

// heldIn returns the query for all actors that a user's database of a version names, each with
// whether the user may follow it. An actor can occur several times.
func heldIn(version int) string {
	all := []string{`SELECT DISTINCT CASE jsonb_typeof(by) WHEN 'string' THEN by #>> '{}' ELSE by ->> 'id' END AS actor, false AS follows
		FROM objects, jsonb_path_query(raw, '$.attributedTo[*]') AS by`}
	for _, h := range heldColumns {
		if h.since > version {
			continue
		}
		actor, follows := h.column, `false`
		if h.array {
			actor = `unnest(` + h.column + `)`
		}
		if h.follows != "" {
			follows = h.follows
		}
		all = append(all, `SELECT DISTINCT `+actor+`, `+follows+` FROM `+h.table)
	}
	return strings.Join(all, "\n\t\tUNION ALL ")
}

// HeldNowhere returns the condition that no column names the actor. It does not look at array
// columns, and not at the table that the parameter but names.
func HeldNowhere(actor, but string) string {
	var none []string
	for _, h := range heldColumns {
		if !h.array && h.table != but {
			none = append(none, `NOT EXISTS (SELECT FROM `+h.table+` h WHERE h.`+h.column+` = `+actor+`)`)
		}
	}
	return strings.Join(none, "\n\t\tAND ")
}

// HeldElsewhere returns the query for those values of the column uri of the small table few that
// are in an array column or are authors of objects. One query looks up all of them, because for
// one at a time the planner would scan whole tables.
func HeldElsewhere(few string) string {
	uri := few + `.uri`
	from := `SELECT ` + uri + ` FROM ` + few + ` JOIN `
	var all []string
	for _, h := range heldColumns {
		if h.array {
			all = append(all, from+h.table+` h ON h.`+h.column+` @> ARRAY[`+uri+`]`)
		}
	}
	for _, author := range authorForms(uri) {
		all = append(all, from+`objects o ON `+author.in("o.raw"))
	}
	return strings.Join(all, "\n\t\tUNION ")
}

// authorForm is a form in which a document names one of its authors.
type authorForm string

// authorForms returns the forms for an actor, which is an SQL expression of type text: an id or
// an object with an id, alone or in a list.
func authorForms(actor string) []authorForm {
	object := `jsonb_build_object('id', ` + actor + `)`
	return []authorForm{authorForm(`to_jsonb(` + actor + `)`), authorForm(object), authorForm(`jsonb_build_array(` + object + `)`)}
}

// in returns the condition that a document has the form. The index objects_attributed_to
// supports it.
func (f authorForm) in(raw string) string { return raw + ` -> 'attributedTo' @> ` + string(f) }

// WrittenBy returns the condition that an actor is an author of a document, in any form. Both
// parameters are SQL expressions, actor of type text.
func WrittenBy(raw, actor string) string {
	var forms []string
	for _, f := range authorForms(actor) {
		forms = append(forms, f.in(raw))
	}
	return `(` + strings.Join(forms, " OR ") + `)`
}
