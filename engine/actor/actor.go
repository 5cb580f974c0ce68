// Package actor serves the documents and keys of local actors, fetches remote actors and the
// keys that they list, answers and queries WebFinger, and verifies who signed a request.
package actor
