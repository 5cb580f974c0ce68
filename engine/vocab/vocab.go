// Package vocab has the types of ActivityPub: ids, usernames, activities, objects, actors and
// collections. It reads them from JSON, leniently (ActivityStreams 2.0 §4), and writes them to
// JSON, strictly. It is the only package that parses ActivityPub documents from the network.
package vocab
