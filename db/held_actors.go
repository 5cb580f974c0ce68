package db

import "strings"

// heldColumn is a column of users' databases that names actors: by a row there the user holds something of the actor's.
type heldColumn struct {
	table, column string
	since         int  // the schema that has it first
	array         bool // it names several
	follows       string
}

// heldColumns are all such columns, besides the authors of objects. To name actors in another column, add it here, or to the
// exceptions of the test with a reason.
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
}

// heldIn selects every actor that a database of a schema holds anything of, and whether the user may follow it: once or more
// often.
func heldIn(schema int) string {
	all := []string{`SELECT DISTINCT CASE jsonb_typeof(by) WHEN 'string' THEN by #>> '{}' ELSE by ->> 'id' END AS actor, false AS follows
		FROM objects, jsonb_path_query(raw, '$.attributedTo[*]') AS by`}
	for _, h := range heldColumns {
		if h.since > schema {
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

// heldNowhere holds for an actor that no plain column names, but for those of one table.
func heldNowhere(actor, but string) string {
	var none []string
	for _, h := range heldColumns {
		if !h.array && h.table != but {
			none = append(none, `NOT EXISTS (SELECT FROM `+h.table+` h WHERE h.`+h.column+` = `+actor+`)`)
		}
	}
	return strings.Join(none, "\n\t\tAND ")
}

// heldElsewhere selects those of the uris of a small table that are in no plain column but in an array, or are authors. They
// are looked up as a whole: one by one, the planner would rather read the tables through.
func heldElsewhere(few string) string {
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
