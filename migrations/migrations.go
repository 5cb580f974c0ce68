// Package migrations holds the SQL that makes and changes the two kinds of databases: one set for each user's, one for
// the instance's. A released file is never edited.
package migrations

import "embed"

// FS holds user/NNNN_title.up.sql and .down.sql, and the same under instance/.
//
//go:embed user/*.sql instance/*.sql
var FS embed.FS
