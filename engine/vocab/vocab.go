// Package vocab holds the nouns of ActivityPub: ids, usernames, activities, objects, actors and
// collections, and how they are read from JSON and written to it. It is lenient in what it reads
// (ActivityStreams 2.0 §4), strict in what it writes, and the only place that parses JSON from the
// network.
package vocab
