package db

import (
	"slices"
	"strings"

	"github.com/lightweb/lightweb/engine/vocab"
)

// This file holds what engine/audience decides, as SQL: no other statement looks into to, cc and
// audience. The truth table of that package is run through it. Stored documents have no bto and
// bcc. Where an addressing holds objects in place of ids, the SQL form finds nobody, as the most
// private reading.

// publicForms are the ways in which everybody is addressed (ActivityPub §5.6); vocab reads them
// all.
const publicForms = `'{` + string(vocab.Public) + `,as:Public,Public}'::text[]`

// addressesPublic holds for rows whose document addresses everybody.
var addressesPublic = publicIn("raw")

// addressesAny holds for rows whose document addresses any of $2 where collections list it, and
// for all when that is null.
const addressesAny = `($2::text[] IS NULL OR raw -> 'to' ?| $2 OR raw -> 'cc' ?| $2)`

// listed returns the $2 of addressesAny, with every form of everybody; null for nil.
func listed(to []vocab.ID) []string {
	if to == nil {
		return nil
	}
	all := texts(to)
	if slices.Contains(to, vocab.Public) {
		all = append(all, "as:Public", "Public")
	}
	return all
}

// publicIn holds for a document that addresses everybody, in to or cc.
func publicIn(raw string) string {
	return `(coalesce(` + raw + ` -> 'to' ?| ` + publicForms + `, false) OR coalesce(` + raw + ` -> 'cc' ?| ` + publicForms + `, false))`
}

// namedIn holds for a document that names the id of an expression anywhere.
func namedIn(raw, id string) string {
	var in []string
	for _, field := range addressed {
		in = append(in, `coalesce(`+raw+` -> '`+field+`' ? `+id+`, false)`)
	}
	return `(` + strings.Join(in, " OR ") + `)`
}

// addressed are the members of a stored document that address somebody.
var addressed = []string{"to", "cc", "audience"}

// saysAudience holds for a document that addresses somebody, or says that it addresses nobody.
func saysAudience(raw string) string {
	return raw + ` ?| '{` + strings.Join(addressed, ",") + `}'`
}

// privateIn holds for a document that addresses neither everybody, here or everywhere, nor the
// followers of its author. Expressions give the ids of both; null: nobody knows that collection.
func privateIn(raw, author, followers string) string {
	return `NOT (` + publicIn(raw) + ` OR ` + namedIn(raw, followers) + ` OR ` + hereIn(raw, author) + `)`
}

// sentTo holds for a document of the user's that names the id of an expression in to, for which
// there is an index.
func sentTo(raw, id string) string { return raw + ` -> 'to' ? ` + id }

// amongIn holds for a document that addresses nobody but those of an expression, a JSON array of
// ids.
func amongIn(raw, ids string) string {
	var in []string
	for _, field := range addressed {
		in = append(in, `coalesce(`+raw+` -> '`+field+`', '[]') <@ `+ids)
	}
	return `(` + strings.Join(in, " AND ") + `)`
}

// hereIn holds for a document that is for everybody on the server of its author, whose id an
// expression gives.
func hereIn(raw, author string) string {
	return namedIn(raw, `(substring(`+author+` from '^https?://[^/]+') || '/#Public')`)
}

// wroteTo holds where the user, whose followers $1 is, has written to $2 in private.
var wroteTo = `EXISTS (SELECT FROM activities WHERE type = '` + vocab.Create + `' AND direction = 'outbound' AND raw -> 'to' ? $2 AND ` + privateIn("raw", "actor_uri", "$1") + `)`

// addressedIn selects the uris of a table that activities of the user's address, of one type or of
// any; the engine addresses by to and cc alone, for which there are indexes.
func addressedIn(table, kind string) string {
	of := `SELECT ` + table + `.uri FROM ` + table + ` JOIN activities a ON a.raw -> `
	outbound := `.uri WHERE a.direction = 'outbound'`
	if kind != "" {
		outbound += ` AND a.type = '` + kind + `'`
	}
	return of + `'to' ? ` + table + outbound + ` UNION ` + of + `'cc' ? ` + table + outbound
}
