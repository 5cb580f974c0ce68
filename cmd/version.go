package cmd

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// The linker sets these variables for a release. If it does not, the build information of the Go
// tool is used.
var version, commit, date string

// buildInfo describes this program.
type buildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func build() buildInfo {
	b := buildInfo{Version: version, Commit: commit, Date: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		noted := map[string]string{}
		for _, s := range info.Settings {
			noted[s.Key] = s.Value
		}
		if v := info.Main.Version; v != "(devel)" {
			b.Version = cmp.Or(b.Version, v)
		}
		b.Commit = cmp.Or(b.Commit, noted["vcs.revision"])
		b.Date = cmp.Or(b.Date, noted["vcs.time"])
	}
	b.Version = cmp.Or(b.Version, "devel")
	return b
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version",
		Long:    "version shows which lightweb this is: version, commit, date of the commit, and what it was built with and for.",
		Example: "  lightweb version --json",
		Args:    takesArgs(),
		RunE: a.action(func(context.Context, []string) error {
			b := build()
			facts := []fact{{key: "version", value: b.Version, titled: true}, {key: "commit", value: b.Commit}, {key: "date", value: b.Date}, {key: "go", value: b.Go}, {key: "os", value: b.OS}, {key: "arch", value: b.Arch}}
			return a.out.writeFacts("lightweb "+b.Version, facts, b)
		}),
	}
}
