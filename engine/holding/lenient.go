//go:build !race

package holding

const strict = false
