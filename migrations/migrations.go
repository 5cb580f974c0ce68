// Package migrations holds the SQL that makes and changes the two kinds of databases: one set for
// each user's, one for the instance's. A released file is never edited.
//
// Each file is one transaction, with what marks it done: BEGIN, COMMIT, VACUUM and CONCURRENTLY
// have no place in it. So a change that did not end has left nothing behind, and can be made again
// ('lightweb db migrate --repair'). Numbers run from 1 without gaps.
package migrations

import "embed"

// FS holds user/NNNN_title.up.sql and .down.sql, and the same under instance/.
//
//go:embed user/*.sql instance/*.sql
var FS embed.FS
