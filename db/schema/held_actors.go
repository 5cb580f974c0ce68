package schema

import "strings"

// heldColumn is a column of users' databases that names actors: a row there holds something of the
// actor.
type heldColumn struct {
	table, column string
	since         int  // the schema that has it first
	array         bool // it names several
	follows       string
}

// heldColumns are all such columns, besides the authors of objects. A new column that names actors
// belongs here, or among the exceptions of the test, with a reason.
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
}

// HeldColumns returns the columns by which a user's database holds something of an actor, as
// table.column; authors of objects are not among them.
func HeldColumns() (all []string) {
	for _, h := range heldColumns {
		all = append(all, h.table+"."+h.column)
	}
	return all
}

// KnownActors selects the actors of which a user's database of a version holds anything, and
// whether the user may follow them. $1 is the user's own actor.
func KnownActors(version int) string {
	return `SELECT actor, bool_or(follows) FROM (` + heldIn(version) + `) AS k WHERE actor <> '' AND actor <> $1 GROUP BY actor`
}

// heldIn selects every actor of which a user's database of a version holds anything, and whether
// the user may follow it: once or more often.
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

// HeldNowhere returns the condition that no plain column names an actor, apart from the columns of
// one table.
func HeldNowhere(actor, but string) string {
	var none []string
	for _, h := range heldColumns {
		if !h.array && h.table != but {
			none = append(none, `NOT EXISTS (SELECT FROM `+h.table+` h WHERE h.`+h.column+` = `+actor+`)`)
		}
	}
	return strings.Join(none, "\n\t\tAND ")
}

// HeldElsewhere selects those uris of a small table that stand in an array, or are those of
// authors. They are looked up together: for one at a time the planner would read the whole tables.
func HeldElsewhere(few string) string {
	uri := few + `.uri`
	from := `SELECT ` + uri + ` FROM ` + few + ` JOIN `
	var all []string
	for _, h := range heldColumns {
		if h.array {
			all = append(all, from+h.table+` h ON h.`+h.column+` @> ARRAY[`+uri+`]`)
		}
	}
	for _, author := range []string{`to_jsonb(` + uri + `)`, `jsonb_build_object('id', ` + uri + `)`, `jsonb_build_array(jsonb_build_object('id', ` + uri + `))`} {
		all = append(all, from+`objects o ON o.raw -> 'attributedTo' @> `+author)
	}
	return strings.Join(all, "\n\t\tUNION ")
}
