// Package actor is about who acts: the documents and keys of local actors, finding remote ones and
// the keys they list, WebFinger in both directions, and whose signature a request bears.
package actor
