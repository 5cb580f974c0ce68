package schema

import "strings"

// heldColumn is a column of users' databases that names actors. A user's database holds data of an
// actor if such a column names the actor.
type heldColumn struct {
	table, column string
	since         int  // the first schema version that has the column
	array         bool // the column is an array of actors
	// follows is the SQL condition under which a row means that the user may follow the actor. If
	// it is empty, no row of the table means that.
	follows string
}

// heldColumns are all columns that name actors, except the authors in documents of objects. A new
// column that names actors must be added here. If it is left out for a reason, it must be added
// to the exceptions in the test, with that reason.
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

// KnownActors returns the query for the actors that a user's database names. The parameter
// version is the version of the database's schema. Each row of the result has an actor, and says
// whether the user may follow the actor. $1 is the user's own actor, which is left out.
func KnownActors(version int) string {
	return `SELECT actor, bool_or(follows) AS follows FROM (` + heldIn(version) + `) AS k WHERE actor <> '' AND actor <> $1 GROUP BY actor`
}

// heldIn returns a query like that of KnownActors, but its result includes the user's own actor,
// and an actor can occur several times.
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

// HeldNowhere returns the condition that no column names the actor. The condition leaves out
// array columns, and the table whose name is in the parameter "but".
func HeldNowhere(actor, but string) string {
	var none []string
	for _, h := range heldColumns {
		if !h.array && h.table != but {
			none = append(none, `NOT EXISTS (SELECT FROM `+h.table+` h WHERE h.`+h.column+` = `+actor+`)`)
		}
	}
	return strings.Join(none, "\n\t\tAND ")
}

// HeldElsewhere returns a query on the small table named few. The query returns those values of
// the table's column uri that an array column contains, or that are authors of objects. It looks
// up all values at once, because for a single value the planner would scan whole tables.
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

// authorForms returns the forms in which a document can name an actor as author. The author is an
// id or an object with an id, alone or in a list. The parameter actor is an SQL expression of
// type text.
func authorForms(actor string) []authorForm {
	object := `jsonb_build_object('id', ` + actor + `)`
	return []authorForm{authorForm(`to_jsonb(` + actor + `)`), authorForm(object), authorForm(`jsonb_build_array(` + object + `)`)}
}

// in returns the condition that a document has the form. The index objects_attributed_to
// supports it.
func (f authorForm) in(raw string) string { return raw + ` -> 'attributedTo' @> ` + string(f) }

// WrittenBy returns the condition that an actor is an author of a document, in any form. Both
// parameters are SQL expressions. The type of actor is text.
func WrittenBy(raw, actor string) string {
	var forms []string
	for _, f := range authorForms(actor) {
		forms = append(forms, f.in(raw))
	}
	return `(` + strings.Join(forms, " OR ") + `)`
}
