//go:build race

package enginetest

// race tells whether the tests run under the race detector: then so do the processes they start.
const race = true
