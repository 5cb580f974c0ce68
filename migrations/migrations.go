// Package migrations holds the SQL that makes and changes the databases. There is one set for
// users' databases, and one for the instance database. A released file is never edited.
//
// Each file runs as one transaction, together with the statement that marks it as done. So it
// must not contain BEGIN, COMMIT, VACUUM or CONCURRENTLY. An interrupted change leaves nothing
// behind, and can be repeated ('lightweb db migrate --repair'). Numbers run from 1 without gaps.
package migrations

import "embed"

// FS holds the files user/NNNN_title.up.sql and user/NNNN_title.down.sql, and files with such
// names under instance/.
//
//go:embed user/*.sql instance/*.sql
var FS embed.FS
