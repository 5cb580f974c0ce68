// Command lightweb is an ActivityPub federation engine and the tools to run it.
package main

import (
	"context"
	"os"

	"github.com/lightweb/lightweb/cmd"
)

func main() {
	os.Exit(cmd.Main(context.Background(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}
